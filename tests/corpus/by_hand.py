# SPDX-License-Identifier: Apache-2.0
"""Graphs written as text, ``hand/NAME.igraph``, and what NumPy says that they compute."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from uir_tvm.igraph import IGraph, parse_igraph

from .entry import Entry

FOLDER = pathlib.Path(__file__).parent / "hand"


@attrs.frozen
class ByHand:
    """What a graph computes.

    Attributes
    ----------
    shapes : the shape of each ``in`` and ``inout`` parameter, in order; they are passed flat.
    reference : arrays of these shapes (floats in float64) -> the result.
    high : integers are drawn below this.
    """

    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Any]
    high: int = 8

    def inputs(self, graph: IGraph, seed: int = 0) -> list[np.ndarray]:
        """Random inputs for the graph; indices of one unit differ."""
        rng = np.random.default_rng(seed)
        out = []
        wanted = [p for p in graph.params if p.role != "out"]
        for pointer, shape in zip(wanted, self.shapes, strict=True):
            if pointer.dtype == "fp32":
                out.append(rng.standard_normal(shape).astype(np.float32))
            elif pointer.dtype == "int64":
                rows = [rng.permutation(self.high)[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]
                out.append(np.array(rows, np.int64).reshape(shape))
            else:
                out.append(rng.integers(0, self.high, shape).astype(np.int32))
        return out

    def expected(self, inputs: list[np.ndarray]) -> np.ndarray:
        """What NumPy says, floats in float64."""
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in inputs]
        return np.asarray(self.reference(*wide)).reshape(-1)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _rms_norm(x: Any, gamma: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * gamma


def _product(a: Any, b: Any) -> Any:
    return a @ b


def _histogram(x: Any) -> Any:
    return [np.bincount(row, minlength=16) for row in x]


def _scatter(rows: Any, index: Any, cache: Any) -> Any:
    out = cache.copy()
    for unit in range(len(index)):
        out[unit, index[unit]] = rows[unit]
    return out


def _neighbours(x: Any) -> Any:
    padded = np.pad(x, ((0, 0), (1, 1)))
    return padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]


def _averaging(x: Any) -> Any:
    for _ in range(4):
        padded = np.pad(x, 1)
        x = (padded[:-2] + padded[2:]) / 2
    return x


#: Every graph in ``hand/`` by name.
BY_HAND: dict[str, ByHand] = {
    "averaging_dram": ByHand(((64,),), _averaging),
    "bias_from_leader": ByHand(((32, 24), (24,)), lambda x, b: x + b),
    "column_sum_sram": ByHand(((2, 32, 24),), lambda x: x.sum(1)),
    "column_sum_two_phases": ByHand(((64, 40),), lambda x: x.sum(0)),
    "grouped_softmax": ByHand(((12, 64),), _softmax),
    "grouped_softmax_one_buffer": ByHand(((12, 64),), _softmax),
    "histogram": ByHand(((2, 96),), _histogram, high=16),
    "neighbours_sram": ByHand(((2, 64),), _neighbours),
    "online_softmax": ByHand(((16, 40),), _softmax),
    "pairs_rms_norm": ByHand(((16, 48), (48,)), _rms_norm),
    "product_pipeline": ByHand(((32, 32), (32, 16)), _product),
    "product_shared": ByHand(((32, 24), (24, 16)), _product),
    "product_shared_ragged": ByHand(((32, 21), (21, 16)), _product),
    "product_split_k": ByHand(((8, 24), (24, 16)), _product),
    "product_two_buffers": ByHand(((32, 24), (24, 16)), _product),
    "scatter_rows": ByHand(((8, 3, 4), (8, 3), (8, 8, 4)), _scatter),
    "share_of_total": ByHand(((128,),), lambda x: x / x.sum()),
    "staged_transpose": ByHand(((32, 64),), lambda x: x.T),
}


@functools.cache
def graph(name: str) -> IGraph:
    """The graph of a file."""
    return parse_igraph((FOLDER / f"{name}.igraph").read_text())


def entries() -> Iterator[Entry]:
    """Every file."""
    for name in BY_HAND:
        yield Entry(name, None, graph(name), "hand")
