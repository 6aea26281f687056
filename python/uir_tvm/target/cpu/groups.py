# SPDX-License-Identifier: Apache-2.0
"""Fusion: which actions share a loop over rows (a nest), and within it a loop over columns (a group).

    nest (rows)                         for r:
      group: load x, reduce max           for c: x, max
      group: sub, exp, reduce add         for c: e = exp(x - max), sum
      group: mul, store                   for c: out = e * (1 / sum)

Actions share a nest when one row of either depends on no other row of the other, so a row stays in the
first-level cache through all its groups.  They share a group when they also touch the same elements at the
same coordinates, so values pass from one to the next in registers.  An action moves into the latest nest and
group that the order of its memory accesses allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from .actions import COLLECT, MAP, OPAQUE, REDUCE_ROW, SCATTER, Action
from .element_access import Domain, Overlap, StridedAccess, relation
from .flat_rows import flat_actions, repeated_apart


@attrs.define(eq=False)
class ColumnGroup:
    """Actions that share a loop over columns, in program order."""

    key: tuple[Any, ...]
    actions: list[Action] = attrs.field(factory=list)

    @property
    def cols(self) -> int:
        """Columns of the domain."""
        return self.actions[0].cols

    @property
    def times(self) -> int:
        """How many neighbours of a row are one element of what is read."""
        return max((read.access.times for action in self.actions for read in action.reads), default=1)


@attrs.define(eq=False)
class RowNest:
    """Actions that share a loop over rows; ``groups`` partitions ``actions``."""

    key: tuple[Any, ...]
    actions: list[Action] = attrs.field(factory=list)
    groups: list[ColumnGroup] = attrs.field(factory=list)

    @property
    def rows(self) -> int:
        """Rows of the domain."""
        return self.actions[0].rows

    def group_of(self, action: Action) -> int:
        """The position of the action's group."""
        return next(k for k, group in enumerate(self.groups) if action in group.actions)


def write_domain(action: Action) -> Domain:
    """Coordinates of what it writes: one column for a reduction along rows."""
    return Domain(action.rows, 1 if action.kind == REDUCE_ROW else action.cols)


def writes(action: Action) -> Iterable[tuple[StridedAccess, Domain]]:
    """What it writes, and over which coordinates."""
    yield action.write, write_domain(action)


def reads(action: Action) -> Iterable[tuple[StridedAccess, Domain]]:
    """What it reads at its coordinates (tables are apart)."""
    for read in action.reads:
        yield read.access, Domain(action.rows, action.cols)


def conflict(first: Action, then: Action) -> Overlap:
    """The worst relation of two accesses of which one is a write: what keeps ``then`` behind ``first``."""
    if first.write.pointer.name not in then.names and then.write.pointer.name not in first.names:
        return Overlap.DISJOINT
    if _tables_meet(first, then):
        return Overlap.OTHER
    worst = Overlap.DISJOINT
    pairs = [(w, x) for w in writes(first) for x in (*reads(then), *writes(then))]
    pairs += [(x, w) for x in reads(first) for w in writes(then)]
    for (a, a_domain), (b, b_domain) in pairs:
        if a.pointer.name != b.pointer.name:
            continue
        if SCATTER in (first.kind, then.kind) or OPAQUE in (first.kind, then.kind):
            return Overlap.OTHER
        found = relation(a, a_domain, b, b_domain)
        if found != Overlap.DISJOINT and COLLECT in _kinds_writing(first, a, then, b):
            return Overlap.OTHER
        worst = max(worst, found)
    return worst


def _kinds_writing(first: Action, a: StridedAccess, then: Action, b: StridedAccess) -> set[str]:
    return {x.kind for x, access in ((first, a), (then, b)) if x.write is access}


def _tables_meet(first: Action, then: Action) -> bool:
    def tables(x: Action) -> set[str]:
        return {piece.pointer.name for piece in x.tables}

    return first.write.pointer.name in tables(then) or then.write.pointer.name in tables(first)


def overwrites_itself(action: Action) -> bool:
    """Whether the action writes what it still has to read at another coordinate."""
    if any(piece.pointer.name == action.write.pointer.name for piece in action.tables):
        return True
    for access, domain in reads(action):
        found = relation(action.write, write_domain(action), access, domain)
        if found > (Overlap.ROW if action.kind == REDUCE_ROW else Overlap.SAME):
            return True
        if found != Overlap.DISJOINT and action.kind in (COLLECT, SCATTER):
            return True
    return False


def plan(actions: Sequence[Action]) -> list[RowNest]:
    """The nests of a straight run of actions, in an order that keeps its meaning."""
    nests: list[RowNest] = []
    for nest in _nests(actions):
        for part in _turned_first(nest):
            for whole in _repeated_last(part):
                better = _reoriented(whole)
                _form_groups(better)
                nests.append(better)
    return nests


def _turned_first(nest: RowNest) -> list[RowNest]:
    """A nest with reductions after nests that bring what it reads across rows: block by block, transposed."""
    if all(action.kind in (MAP, OPAQUE) for action in nest.actions):
        return [nest]
    moves = [action for number, action in enumerate(nest.actions) if _is_turned_load(nest, number)]
    rest = [action for action in nest.actions if action not in moves]
    return [
        *(RowNest((OPAQUE, id(move)), [move]) for move in moves),
        *([RowNest(nest.key, rest)] if rest else []),
    ]


def _repeated_last(nest: RowNest) -> list[RowNest]:
    """A nest after one that makes what it has of every row, where its rows are one row that repeats that."""
    parts = repeated_apart(nest.actions)
    return [nest] if parts is None else [RowNest(nest.key, part) for part in parts]


def _is_turned_load(nest: RowNest, number: int) -> bool:
    """Whether an action only brings a tile that lies across, and nothing before it touches what it writes."""
    action = nest.actions[number]
    if action.iop.op != "move" or action.kind != MAP or len(action.reads) != 1:
        return False
    access, made = action.reads[0].access, action.write.pointer
    if access.row != 1 or access.col in (-1, 0, 1) or made.level != "reg":
        return False
    written = [other.write.pointer.name for other in nest.actions if other is not action]
    before = (other.names for other in nest.actions[:number])
    return not {made.name, access.pointer.name} & set(written) and not any(
        made.name in names for names in before
    )


def _nests(actions: Sequence[Action]) -> list[RowNest]:
    nests: list[RowNest] = []
    for action in actions:
        chosen, at = action, _place(nests, action)
        if _is_vector(action):
            # (1, N) and (N, 1) are the same work: the form that joins what it depends on
            turned = action.swapped()
            other = _place(nests, turned)
            if other is not None and (at is None or other >= at) and _meets(nests[other], turned):
                chosen, at = turned, other
        if at is None:
            nests.append(RowNest(_nest_key(chosen), [chosen]))
        else:
            nests[at].actions.append(chosen)
    return nests


def _meets(nest: RowNest, action: Action) -> bool:
    """Whether an action writes what some action of a nest touches, or the other way round."""
    return any(conflict(other, action) != Overlap.DISJOINT for other in nest.actions)


def _is_vector(action: Action) -> bool:
    one = (action.rows == 1) != (action.cols == 1)
    return one and action.kind == MAP and not action.tables


def _place(nests: Sequence[RowNest], action: Action) -> int | None:
    """The latest nest that an action may join; None where it needs one of its own."""
    first = 0
    for k, nest in enumerate(nests):
        worst = max((conflict(other, action) for other in nest.actions), default=Overlap.DISJOINT)
        if worst != Overlap.DISJOINT:
            shared = nest.key == _nest_key(action) and worst <= Overlap.ROW
            first = k if shared else k + 1
    fitting = [k for k in range(first, len(nests)) if nests[k].key == _nest_key(action)]
    return fitting[-1] if fitting else None


def _nest_key(action: Action) -> tuple[Any, ...]:
    if action.kind == OPAQUE:
        return (OPAQUE, id(action))
    return (action.kind == SCATTER and id(action), *action.row_key)


def _form_groups(nest: RowNest) -> None:
    nest.groups = []
    place: dict[int, int] = {}
    for action in nest.actions:
        first = 0
        for other in nest.actions:
            if other is action:
                break
            worst = conflict(other, action)
            if worst == Overlap.DISJOINT:
                continue
            at = place[id(other)]
            whole = other.kind != MAP and other.write.pointer.name in _touched(action)
            same = worst == Overlap.SAME and not whole and nest.groups[at].key == action.col_key
            first = max(first, at if same else at + 1)
        fitting = [k for k in range(first, len(nest.groups)) if nest.groups[k].key == action.col_key]
        if fitting:
            at = fitting[-1]
        else:
            at = len(nest.groups)
            nest.groups.append(ColumnGroup(action.col_key))
        nest.groups[at].actions.append(action)
        place[id(action)] = at


def _touched(action: Action) -> set[str]:
    return {access.pointer.name for access, _ in (*reads(action), *writes(action))}


# --- orientation -----------------------------------------------------------------------------------


def _reoriented(nest: RowNest) -> RowNest:
    """The nest over one long row where its tile is contiguous, or with the contiguous side as columns."""
    if any(action.kind in (OPAQUE, SCATTER) or action.tables for action in nest.actions):
        return nest
    flat = flat_actions(nest.actions)
    if flat is not None:
        return RowNest(nest.key, flat)
    votes = [_vote(access, action) * n for action in nest.actions for access, n in _weighted(action)]
    if sum(votes) >= 0:
        return nest
    swapped = [action.swapped() for action in nest.actions]
    built = _nests(swapped)
    return built[0] if len(built) == 1 else nest


def _weighted(action: Action) -> list[tuple[StridedAccess, int]]:
    return [(action.write, 2), *((read.access, 1) for read in action.reads)]


def _vote(access: StridedAccess, action: Action) -> int:
    """Positive for columns that are contiguous or alone, negative for such rows."""
    if action.rows == 1:
        return 0
    if action.cols == 1:
        return -1 if access.row == 1 else 0
    return int(access.col == 1) - int(access.row == 1)
