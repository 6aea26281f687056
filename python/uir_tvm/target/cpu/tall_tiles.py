# SPDX-License-Identifier: Apache-2.0
"""Units whose tiles lie one beneath the other: a thread's neighbours among them as one tall tile.

Bounds and addresses of a tile take as long as moving a block or two of it.  Where sizes decide how many units
there are, a thread has neighbours; where they decide how wide a tile is, it may be as narrow as one block.

Before::

    for pid in units: for k in (n + 63) // 64: rows 16*pid .. min(16*pid + 16, s)

After, where ``n <= 64``::

    rows 0 .. min(16*units, s)
"""

from __future__ import annotations

from ...igraph.affine import Affine, affine, var
from ...igraph.iops import spec_of
from .actions import Action
from .element_access import StridedAccess
from .groups import RowNest
from .values import OperandValues, Origin


def goes_on(nest: RowNest, values: OperandValues) -> bool:
    """Whether the next unit does the rows below those of a nest, just as more rows of the nest would."""
    return all(_goes_on(action, values) for action in nest.actions)


def _goes_on(action: Action, values: OperandValues) -> bool:
    begin, end, left, right = action.box
    if begin is not None or not (end is None or _growth(end) == affine(-action.rows)):
        return False
    if any(bound is not None and "pid" in bound.variables() for bound in (left, right)):
        return False
    if action.tables or spec_of(action.iop).by_place or any(read.guard for read in action.reads):
        return False
    sources = zip(action.reads, values.sources[id(action)], strict=True)
    accesses = [read.access for read, source in sources if source.origin == Origin.MEMORY]
    if values.stored(action):
        accesses.append(action.write)
    return all(_lies_below(access, action.rows) for access in accesses)


def _lies_below(access: StridedAccess, rows: int) -> bool:
    """Whether the first row of the next unit follows the last of this one."""
    pitch = access.pitches[0]
    return _growth(access.offset) == (affine(access.row) if pitch is None else pitch) * rows


def _growth(value: Affine) -> Affine:
    """By how much an expression grows from one unit to the next."""
    return value.substitute({"pid": var("pid") + 1}) - value
