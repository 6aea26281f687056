# SPDX-License-Identifier: Apache-2.0
"""Which positions of a state a call will write, as far as its inputs say: to be checked before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .program import Program, View

#: More operators than this from the inputs to an index, or more elements, are not computed twice.
MOST_OPERATORS, MOST_ELEMENTS = 32, 4096
#: Operators that `runtime.position_checks` computes.
COMPUTED = frozenset("add subtract multiply minimum maximum less where astype copy".split())


def note_position(program: Program, name: str, length: int, index: View) -> None:
    """Let the index of an update be checked before a call, where inputs or state alone decide it."""
    try:
        found = _Expression(program).of(index)
    except _NotKnownBeforeError:
        return
    key = json.dumps([length, found], default=str)  # sizes that are open
    row = program.positions.setdefault(key, {"states": [], "length": length, "index": found})
    row["states"].append(name)


class _NotKnownBeforeError(Exception):
    """What decides is not known before a call."""


class _Expression:
    """An index as plain data."""

    def __init__(self, program: Program) -> None:
        count = len(program.inputs) - len(program.state)
        self.inputs = {value: {"input": at} for at, value in enumerate(program.inputs[:count])}
        self.states = {state.value: {"state": state.name} for state in program.state}
        self.left = MOST_OPERATORS

    def of(self, view: View) -> Mapping[str, Any]:
        """A view; `_NotKnownBeforeError` where it is computed in another way."""
        self.left -= 1
        base, atoms = view.base, view.layout.atoms
        sizes = (view.layout.size, base.size)
        if self.left < 0 or any(isinstance(size, int) and size > MOST_ELEMENTS for size in sizes):
            raise _NotKnownBeforeError
        shown = {
            "view": [[e for e, _ in atoms], [s for _, s in atoms], view.layout.offset, list(view.shape)],
            "dtype": base.dtype,
            "size": base.size,
        }
        op = base.producer
        if base in self.inputs:
            return self.inputs[base] | shown
        if base in self.states:
            return self.states[base] | shown
        if base.constant is not None and base.dtype.startswith(("int", "uint", "bool")):
            return {"constant": base.array.reshape(-1).tolist()} | shown
        if op is None or op.name not in COMPUTED or len(op.results) != 1 or base.memory is not None:
            raise _NotKnownBeforeError
        return {"op": op.name, "operands": [self.of(each) for each in op.operands]} | shown
