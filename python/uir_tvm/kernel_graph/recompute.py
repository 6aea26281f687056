# SPDX-License-Identifier: Apache-2.0
"""Values that every kernel which reads them computes for itself, where that is cheaper than to store them.

Before::

    kernel 1: y = f(x); a = sum(y, rows)      y is written
    kernel 2: b = sum(y, columns)             and read

After::

    kernel 1: a = sum(f(x), rows)
    kernel 2: b = sum(f(x), columns)

f is elementwise operators of the kernel that writes y; their results are the same wherever they are computed.
The new kernels read what f reads, which was there before either of them: no kernel comes to wait for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sizes.open_arithmetic import is_found, representative
from .fusion_cost import RECOMPUTED, KernelWork
from .operator_groups import OperatorGroup
from .operator_traffic import reads_of_kernel
from .program import Op, Value, View

if TYPE_CHECKING:
    from .fusion import Fusion

#: Heroes of the kernels that take such operators.
READERS = frozenset({"elementwise", "reduction", "normalization", "concat"})
#: Operators that are computed again, at most.
MOST_OPERATORS = 8


def recompute(fusion: Fusion) -> None:
    """Let readers of a value compute it, one value after the other."""
    waits = fusion.program.waits
    ordered = {*waits, *(each for earlier in waits.values() for each in earlier)}
    for op in list(fusion.program.ops):
        if op in fusion.groups and op.kind.kind == "elementwise" and len(op.results) == 1:
            candidate = _candidate(fusion, op, ordered)
            if candidate is not None:
                _try(fusion, *candidate)


def _candidate(
    fusion: Fusion, op: Op, ordered: set[Op]
) -> tuple[Value, list[Op], list[OperatorGroup]] | None:
    """The value, the operators that make it of what its kernel reads, and the other kernels that read it."""
    value, home = op.result, fusion.groups[op]
    if value in fusion.outputs or value.memory is not None:
        return None
    readers = [fusion.groups[reader] for reader, _ in fusion.users.get(value, ())]
    others = list(dict.fromkeys(group for group in readers if group is not home))
    if not others or not all(group.hero in READERS for group in others):
        return None
    made = _made_of(fusion, op, home, ordered)
    if not made:
        return None
    stays = any(group is home for group in readers) or len(fusion.needed(home.ops, home.roles)) > 1
    if stays and _further(made, others) >= representative(value.nbytes) * (1 + len(others)):
        return None
    return value, made, others


def _further(made: list[Op], others: list[OperatorGroup]) -> int:
    """Bytes that the operators read which the kernels do not read already."""
    reads = reads_of_kernel(made, representative)
    known = [reads_of_kernel(group.ops, representative) for group in others]
    return sum(max(size - each.get(value, 0), 0) for each in known for value, size in reads.items())


def _made_of(fusion: Fusion, op: Op, home: OperatorGroup, ordered: set[Op]) -> list[Op]:
    """The operators of a kernel that make a value of what the kernel reads; none where some may not."""
    state = {each.value for each in fusion.program.state}
    found, stack = {op}, [op]
    while stack:
        each = stack.pop()
        if each.kind.kind != "elementwise" or len(each.results) != 1 or not each.kind.reshapable:
            return []
        if each in ordered or is_found(*each.result.shape) or len(found) > MOST_OPERATORS:
            return []
        for view in each.operands:
            if view.base in state or view.base.memory is not None:
                return []  # which something may overwrite before the other kernels run
            writer = home.writer(view)
            if writer is not None and writer not in found:
                found.add(writer)
                stack.append(writer)
    return [each for each in home.ops if each in found]


def _try(fusion: Fusion, value: Value, made: list[Op], others: list[OperatorGroup]) -> None:
    """Copy the operators into the kernels that read the value; back, where that does not fit or pay."""
    home = fusion.groups[made[-1]]
    before = _works(fusion, [home, *others])
    saved = _Saved(fusion, [home, *others])
    if not all(_copied_into(fusion, group, value, made) for group in others):
        saved.restore(fusion)
        return
    _drop_unread(fusion, home)
    left = [group for group in (home, *others) if group.ops]
    after, names = _works(fusion, left), [group.name for group in left]
    decision = fusion.cost.decide(RECOMPUTED, value.name, names, before, after, joins=False)
    if not decision.merged:
        saved.restore(fusion)
    fusion.note(decision)


def _works(fusion: Fusion, groups: list[OperatorGroup]) -> list[KernelWork]:
    return [fusion.cost.work(group, fusion.needed(group.ops, group.roles)) for group in groups]


def _copied_into(fusion: Fusion, group: OperatorGroup, value: Value, made: list[Op]) -> bool:
    """Whether a kernel took copies of the operators, whose last one its operators now read."""
    copies: dict[Value, Value] = {}
    new: list[Op] = []
    for op in made:
        operands = [View(copies.get(view.base, view.base), view.layout) for view in op.operands]
        copy = Op(op.name, op.call, operands, [], dict(op.attrs))
        result = fusion.program.fresh(op.result.name, op.result.shape, op.result.dtype)
        result.producer = copy
        copy.results.append(result)
        copies[op.result] = result
        new.append(copy)
    readers = [op for op in group.ops if any(view.base is value for view in op.operands)]
    if not fusion.insert(new, readers[0]):
        return False
    for reader in readers:
        views = reader.operands
        fusion.reread(reader, [View(copies[value], v.layout) if v.base is value else v for v in views])
    return all(fusion.take(group, copy) for copy in reversed(new))


def _drop_unread(fusion: Fusion, home: OperatorGroup) -> None:
    """Leave out what nothing reads any more."""
    dead: set[Op] = set()
    for op in reversed(home.ops):
        if not any(value in fusion.outputs or fusion.users.get(value) for value in op.results):
            dead.add(op)
            fusion.reread(op, [])
    home.ops = [op for op in home.ops if op not in dead]
    for op in dead:
        del home.roles[op], fusion.groups[op]
    fusion.program.ops = [op for op in fusion.program.ops if op not in dead]


class _Saved:
    """A program and some of its groups, as they were."""

    def __init__(self, fusion: Fusion, groups: list[OperatorGroup]) -> None:
        self.ops, self.groups = list(fusion.program.ops), dict(fusion.groups)
        self.parts = [(group, list(group.ops), dict(group.roles), group.hero) for group in groups]
        self.operands = {op: list(op.operands) for group in groups for op in group.ops}
        self.decisions, self.taken_before = dict(fusion.decisions), dict(fusion.taken_before)

    def restore(self, fusion: Fusion) -> None:
        """As it was."""
        for op in fusion.program.ops:
            if op not in self.groups:
                fusion.reread(op, [])
        fusion.program.ops, fusion.groups = self.ops, self.groups
        fusion.decisions, fusion.taken_before = self.decisions, self.taken_before
        for group, ops, roles, hero in self.parts:
            group.ops, group.roles, group.hero = ops, roles, hero
        for op, operands in self.operands.items():
            fusion.reread(op, operands)
