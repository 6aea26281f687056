# SPDX-License-Identifier: Apache-2.0
"""State: who writes its memory, after whom, and what is copied because it is needed later.

Before, a state ``s`` has a value when the program begins (an input) and one when it ends (an output).  After,
operators write the memory of ``s`` itself.  A chain of updates of rows writes these rows alone; any other new
value is stored there by one operator ``copy``, which fusion merges with what computes it.  `Program.waits`
says which operators come before a writer: all that read what it overwrites.  A reader that waits for the
writer itself reads a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ..row_updates import Rows
from ..state_spec import COPIED, IN_PLACE, UNCHANGED, StateSpec
from .known_positions import note_position
from .program import Op, Program, StateValue, Value, View
from .update_rows import UPDATE, flat, update_of


def keep_state(program: Program) -> None:
    """Let the state's new values be written in its own memory; the program's outputs are then the caller's.

    Parameters
    ----------
    program : Program
        Changed in place; after `storage.place`.
    """
    if not program.state:
        return
    writers = [_StateWriter(program, state, program.outputs[state.output]) for state in program.state]
    count = len(program.outputs) - len(program.state)
    program.outputs = program.outputs[:count]
    changed = [writer for writer in writers if writer.begin()]
    _own_outputs(program)
    for writer in changed:
        writer.order()
    program.sort()
    program.remove_dead()


def spec_of(state: StateValue) -> StateSpec:
    """What a report says of a state."""
    value = state.value
    return StateSpec(state.name, value.shape, value.dtype, state.how, state.why, state.written, state.copied)


def written_of(value: Value) -> int:
    """Bytes of a state's new value that its operator writes."""
    rows = None if value.producer is None else value.producer.attrs.get("rows")
    return value.nbytes if rows is None else rows.size * value.nbytes // max(1, value.size)


def overwrites(ops: Sequence[Op]) -> bool:
    """Whether one kernel of these operators would write memory that it reads."""
    written = {value.memory for op in ops for value in op.results if value.memory is not None}
    own = {value for op in ops for value in op.results}
    return bool(written) and any(
        view.base in written or (view.base.memory in written and view.base not in own)
        for op in ops
        for view in op.operands
    )


def _own_outputs(program: Program) -> None:
    """Results are the caller's: copies of what lies in the state's memory, which later calls change."""
    for index, view in enumerate(program.outputs):
        if view.base.memory is not None:
            copy = program.add_op("copy", [view], view.shape, view.base.dtype, hint="output")
            program.ops.append(copy)
            program.outputs[index] = copy.result.view()


@attrs.define(eq=False)
class _StateWriter:
    """How one state gets its new value."""

    program: Program
    state: StateValue
    view: View
    #: Operators that write its memory, in their order, and what its memory holds before each.
    ops: list[tuple[Op, Value]] = attrs.Factory(list)

    def begin(self) -> bool:
        """Make the operators that write the memory; whether there is one."""
        view, memory = self.view, self.state.value
        kept = flat(view)
        if kept is not None and kept.base is memory:
            self.state.how = UNCHANGED
            return False
        self.state.how = IN_PLACE
        chain = None if kept is None else self._chain(kept.base)
        if chain is None:
            self._stored(view)
            return True
        before = memory
        for op, rows, operands in chain:
            op.name, op.call, op.operands, op.attrs = UPDATE, None, operands, {"rows": rows}
            op.result.memory, op.result.shape = memory, (rows.outer * rows.length, rows.inner)
            if len(operands) > 1:
                note_position(self.program, self.state.name, rows.length, operands[-1])
            self.ops.append((op, before))
            self.state.written += written_of(op.result)
            before = op.result
        self.state.result = before
        return True

    def _chain(self, value: Value) -> list[tuple[Op, Rows, list[View]]] | None:
        """The updates of rows that lead from the memory to a value, in their order; None: it is none."""
        found = []
        while value is not self.state.value:
            op = value.producer
            if op is None or value.memory is not None or len(op.results) != 1:
                return None
            update = update_of(op)
            data = None if update is None else flat(op.operands[0])
            if update is None or data is None:
                return None
            found.append((op, *update))
            value = data.base
        return found[::-1]

    def _stored(self, view: View) -> None:
        """One operator stores the new value as a whole."""
        memory = self.state.value
        copy = self.program.add_op("copy", [view], memory.shape, memory.dtype, hint=f"{memory.name}_new")
        copy.result.memory = memory
        self.program.ops.append(copy)
        self.ops.append((copy, memory))
        self.state.result = copy.result
        self.state.written = memory.nbytes

    def order(self) -> None:
        """Let every writer wait for what reads what it overwrites; if that waits for it, a copy."""
        last: Op | None = None
        for op, before in self.ops:
            waits = [] if last is None else [last]
            for reader, index in self.program.users().get(before, []):
                view = reader.operands[index]
                if reader is op or self._follows(reader, op):
                    reader.operands[index] = self._copied(view, waits)
                else:
                    waits.append(reader)
            self.program.waits[op] = list(dict.fromkeys(waits))
            last = op

    def _copied(self, view: View, waits: list[Op]) -> View:
        """What a reader sees, copied before it is overwritten."""
        whole = view.layout.size > view.base.size or view.layout.broadcasts()
        read = view.base.view() if whole else view
        copy = self.program.add_op("copy", [read], read.shape, view.base.dtype, hint=f"{view.base.name}_old")
        self.program.ops.append(copy)
        waits.append(copy)
        self.state.how, self.state.copied = COPIED, self.state.copied + copy.result.nbytes
        self.state.why = self.state.why or "its old value is read after it is written"
        return View(copy.result, view.layout) if whole else copy.result.view()

    def _follows(self, op: Op, first: Op) -> bool:
        """Whether an operator can only run after another."""
        seen, stack = {op}, [op]
        while stack:
            for source in _before(self.program, stack.pop()):
                if source is first:
                    return True
                if source not in seen:
                    seen.add(source)
                    stack.append(source)
        return False


def _before(program: Program, op: Op) -> Iterator[Op]:
    """The operators that must run before one."""
    for view in op.operands:
        if view.base.producer is not None:
            yield view.base.producer
    yield from program.waits.get(op, ())
