# SPDX-License-Identifier: Apache-2.0
"""Which rounds of a loop write anything, for the interpreter: it leaves the others out.

A graph for all sizes has as many rounds as the largest size needs; at a small one most of them find every box
empty.  Asking that of many rounds at once, in C++, takes as long as asking it of a few in Python.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import IGraphError
from .affine import Affine
from .bound import BoundIOp, BoundLoop, Env
from .execute import SPECIAL, gather, pointwise

#: What does nothing where the box of its target is empty.
SKIPPING = (pointwise, gather)
#: Rounds below which asking does not pay, and how many are asked for at once, with those of loops inside.
FEWEST, MOST = 8, 1 << 16
#: Of a loop whose rounds all worked so often in a row, one walk in ``2 ** RAREST`` is asked for.
RAREST = 6

#: Loops between a loop and a slice, and the slice's bounds and extents by axis.
AxisBounds = tuple[Affine | None, Affine | None, int]
TargetBox = tuple[tuple[BoundLoop, ...], tuple[AxisBounds, AxisBounds]]


def working_rounds(loop: BoundLoop, envs: Sequence[Env]) -> Sequence[int]:
    """The rounds, in order, in which some unit may do something.

    Parameters
    ----------
    envs : sequence of Env
        The variables around the loop, of each unit that walks it; they differ in the pid alone.
    """
    every = range(loop.extent)
    if loop.extent < FEWEST or not envs:
        return every
    if loop.targets is None:
        loop.targets = _targets(loop)
    if not loop.targets or loop.extent * len(envs) > MOST:
        return every
    if loop.unasked:
        loop.unasked -= 1
        return every
    busy = np.zeros(loop.extent, np.bool_)
    for target in loop.targets:
        found = _busy(loop, target, envs)
        busy |= True if found is None else found
        if busy.all():
            # a loop that is full is likely so again: it is asked ever more rarely
            loop.full = min(loop.full + 1, RAREST)
            loop.unasked = (1 << loop.full) - 1
            return every
    loop.full = 0
    return np.flatnonzero(busy).tolist()


def _targets(loop: BoundLoop) -> list[TargetBox]:
    """The targets inside, of several with the same bounds one; none where an iOp acts on every round."""
    found: dict[tuple[object, ...], TargetBox] = {}

    def walk(around: tuple[BoundLoop, ...], body: Sequence[BoundIOp | BoundLoop]) -> bool:
        for node in body:
            if isinstance(node, BoundLoop):
                if not walk((*around, node), node.body):
                    return False
            elif node.is_group or SPECIAL.get(node.op, pointwise) not in SKIPPING:
                return False
            else:
                low, high, left, right = node.target.node.valid
                rows: AxisBounds = low, high, node.target.rows
                cols: AxisBounds = left, right, node.target.cols
                if low is high is left is right is None:
                    return False
                found.setdefault((around, str((rows, cols))), (around, (rows, cols)))
        return True

    return list(found.values()) if walk((), loop.body) else []


def _busy(loop: BoundLoop, target: TargetBox, envs: Sequence[Env]) -> np.ndarray | None:
    """In which rounds the box is not empty; None where that is too much to ask, or cannot be said."""
    around, axes = target
    shape = (len(envs), loop.extent, *(inner.extent for inner in around))
    if math.prod(shape) > MOST:
        return None
    values: dict[str, int | np.ndarray] = {**envs[0], "pid": _along(0, [env["pid"] for env in envs], shape)}
    for axis, each in enumerate((loop, *around), 1):
        values[each.var] = _along(axis, range(each.extent), shape)
    full = np.ones(shape, np.bool_)
    try:
        for low, high, extent in axes:
            start = 0 if low is None else np.maximum(low.values(values), 0)
            end = extent if high is None else np.minimum(high.values(values), extent)
            full &= start < end
    except (IGraphError, KeyError):  # each round says what is wrong with it
        return None
    return np.asarray(full.any(axis=tuple(axis for axis in range(len(shape)) if axis != 1)))


def _along(axis: int, values: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    return np.asarray(values, np.int64).reshape([-1 if k == axis else 1 for k in range(len(shape))])
