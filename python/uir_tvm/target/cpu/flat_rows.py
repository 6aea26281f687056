# SPDX-License-Identifier: Apache-2.0
"""Rows that follow each other in memory as one long row, which knows no end but its own.

Short rows, each of which has one element in all of its columns, are a long one that has every element so many
times.  Before, 28 rows of two columns::

    move t[0; (28,1); (1,1)], x[..; (28,1); (1,1)]
    unary.relu u[0; (28,1); (1,1)], t
    broadcast.row y[..; (28,2); (2,1)], u

After, two nests: a row of 28 columns, and one of 56, whose column c is element c // 2 of the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...igraph.iops import spec_of
from .actions import MAP, Action
from .element_access import StridedAccess, injective

#: Columns of a row at most that repeat one element: a vector of more is that element alone.
MOST_TIMES = 16


def flat_actions(actions: Sequence[Action]) -> list[Action] | None:
    """Actions over rows as ones over a single row; None where their rows are no run of memory."""
    first = actions[0]
    if first.rows == 1 or first.cols == 1 or len({action.col_key for action in actions}) > 1:
        return None
    written = {action.write.pointer.name for action in actions}
    for action in actions:
        plain = action.kind == MAP and action.box[2:] == (None, None) and not spec_of(action.iop).by_place
        if not plain or any(read.guard for read in action.reads):
            return None
        if not _goes_on(action.write, first.cols) or not injective(action.write, action.rows, action.cols):
            return None
        for read in action.reads:
            repeats = _repeats(read.access, first.cols) and read.access.pointer.name not in written
            if not repeats and not _goes_on(read.access, first.cols):
                return None
    return [_flat(action) for action in actions]


def repeated_apart(actions: Sequence[Action]) -> tuple[list[Action], list[Action]] | None:
    """What makes one element for each row, and what repeats that along one long row; None: there is no such.

    None also where the former needs what the latter makes.
    """
    narrow = [action for action in actions if action.cols == 1]
    wide = [action for action in actions if action.cols != 1]
    if not narrow or not wide or not all(action.kind == MAP for action in narrow):
        return None
    made = {action.write.pointer.name for action in wide}
    for number, action in enumerate(actions):
        later = {other.write.pointer.name for other in actions[number:] if other.cols == 1}
        if action.names & (made if action.cols == 1 else later):
            return None
    flat = flat_actions(wide)
    if flat is None or not any(read.access.times > 1 for action in flat for read in action.reads):
        return None
    return narrow, wide


def _goes_on(access: StridedAccess, cols: int) -> bool:
    """Whether each row begins where the one before ended, or all elements are one."""
    return access.row == cols * access.col and access.col in (0, 1)


def _repeats(access: StridedAccess, cols: int) -> bool:
    """Whether rows are neighbours, each of one element in all of its few columns."""
    return (access.row, access.col) == (1, 0) and cols <= MOST_TIMES and access.pitches == (None, None)


def _flat(action: Action) -> Action:
    def line(access: StridedAccess) -> StridedAccess:
        if _repeats(access, action.cols):
            return StridedAccess(access.pointer, access.offset, 0, 1, times=action.cols)
        return StridedAccess(access.pointer, access.offset, 0, access.col)

    begin, end = (None if b is None else b * action.cols for b in action.box[:2])
    return Action(
        action.iop,
        MAP,
        1,
        action.rows * action.cols,
        (None, None, begin, end),
        line(action.write),
        [type(read)(line(read.access)) for read in action.reads],
    )
