# SPDX-License-Identifier: Apache-2.0
"""How large slices with bounds are, on some of a graph's units and in some iterations of its loops."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..igraph.affine import Affine
from ..verify.region import PID

#: Units, and iterations of a loop, that are looked at.
UNITS, ITERATIONS = 48, 8
GOLDEN = (math.sqrt(5) - 1) / 2

#: Lower or upper bounds of an axis; all hold.
Bounds = tuple[Affine, ...]
#: An extent, lower bounds and upper bounds.
Axis = tuple[int, Bounds, Bounds]


def sample(extent: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Some of ``0 .. extent - 1``, the first and the last among them, and how many each one stands for.

    Parameters
    ----------
    extent, count : int
        At least 1 and 3; all of them where there are no more than ``count``.
    """
    if extent <= count:
        return np.arange(extent), np.ones(extent)
    # steps of the golden ratio: what repeats with a period (tiles of columns in a row of tiles) is not missed
    share = (np.arange(1, count - 1) * GOLDEN) % 1.0
    middle = np.unique(1 + (share * (extent - 2)).astype(np.int64))
    weights = np.full(len(middle) + 2, (extent - 2) / len(middle))
    weights[[0, -1]] = 1.0
    return np.concatenate([[0], middle, [extent - 1]]), weights


class SliceSizes:
    """Lengths of axes with bounds, each computed once: iOps of a tile share theirs."""

    def __init__(self, units: int) -> None:
        self.units, self.weights = sample(units, UNITS)
        self._known: dict[Any, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    def sizes(
        self, axes: Sequence[Axis], loops: Mapping[str, int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per unit: mean product of the axes' lengths, share of runs where it is above 0, mean first length.

        Parameters
        ----------
        axes : sequence of (extent, lower bounds, upper bounds)
        loops : mapping of str to int
            Extents of the loops around.
        """
        used = sorted({v for _, low, high in axes for e in (*low, *high) for v in e.variables()} - {PID})
        key = (tuple(axes), tuple((v, loops[v]) for v in used))
        if key not in self._known:
            self._known[key] = self._sizes(axes, used, loops)
        return self._known[key]

    def _sizes(
        self, axes: Sequence[Axis], used: Sequence[str], loops: Mapping[str, int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rank = 1 + len(used)
        env: dict[str, np.ndarray] = {PID: self.units.reshape(-1, *(1,) * len(used))}
        weight = np.ones((1,) * rank)
        for at, name in enumerate(used, 1):
            values, share = sample(loops[name], ITERATIONS)
            shape = [1] * rank
            shape[at] = -1
            env[name], weight = values.reshape(shape), weight * share.reshape(shape)
        lengths = []
        for extent, lower, upper in axes:
            low: Any = np.int64(0)
            high: Any = np.int64(extent)
            for bound in lower:
                low = np.maximum(low, bound.values(env))
            for bound in upper:
                high = np.minimum(high, bound.values(env))
            lengths.append(np.maximum(high - low, 0))
        product: Any = math.prod(lengths)
        over = tuple(range(1, rank))
        count = float(weight.sum())

        def mean(values: Any) -> np.ndarray:
            full = np.broadcast_to(values, (len(self.units), *weight.shape[1:])) * weight
            return np.asarray(full.sum(axis=over) / count, np.float64)

        present = mean(product > 0)
        first = mean(np.where(product > 0, lengths[0], 0)) / np.maximum(present, 1e-9)
        return mean(product), present, first


def axis(extent: int, *bounds: Any) -> Axis:
    """An axis with pairs of bounds, each of which may be None."""
    lower = tuple(low for low, _ in bounds if low is not None)
    upper = tuple(high for _, high in bounds if high is not None)
    return extent, tuple(dict.fromkeys(lower)), tuple(dict.fromkeys(upper))
