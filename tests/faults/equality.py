# SPDX-License-Identifier: Apache-2.0
"""Whether two graphs compute the same bits, by the interpreter on random and on adversarial inputs.

Independent of `uir_tvm.verify.equivalent`: what that finds equal is looked at once more here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from uir_tvm import verify
from uir_tvm.errors import UirError
from uir_tvm.igraph import IGraph, IPointer, interpreter
from uir_tvm.igraph.dtypes import DTYPES, numpy_of

Array = np.ndarray


def _normal(p: IPointer, rng: np.random.Generator) -> Array:
    return rng.standard_normal(p.size)


def _ties(p: IPointer, rng: np.random.Generator) -> Array:
    return rng.integers(-2, 3, p.size).astype(np.float64)


def _special(p: IPointer, rng: np.random.Generator) -> Array:
    tiny = float(np.finfo(np.float32).tiny)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny / 4, -tiny / 8, 1e30, -1e30, 0.5, -0.5, 1.0])
    out = rng.standard_normal(p.size)
    chosen = rng.random(p.size) < 0.3
    out[chosen] = rng.choice(values, int(chosen.sum()))
    return out


def _positive(p: IPointer, rng: np.random.Generator) -> Array:
    return rng.uniform(0.25, 40.0, p.size)


def _masked(p: IPointer, rng: np.random.Generator) -> Array:
    """Long stretches of nothing but minus infinity."""
    return np.where(np.arange(p.size) // 64 % 2 == 0, -np.inf, rng.standard_normal(p.size))


def _rising(p: IPointer, rng: np.random.Generator) -> Array:
    """Every element differs from every other by much."""
    return np.arange(p.size) / 8 - p.size / 20


#: How floats are drawn, and below and up to which numbers integers are.
INPUTS: tuple[tuple[str, Callable[[IPointer, np.random.Generator], Array], tuple[int, int]], ...] = (
    ("normal", _normal, (0, 5)),
    ("ties", _ties, (-1, 3)),
    ("special", _special, (-100, 100)),
    ("positive", _positive, (0, 100)),
    ("rising", _rising, (0, 2)),
    ("masked", _masked, (0, 5)),
)


def inputs_of(graph: IGraph, number: int, seed: int) -> dict[str, Array]:
    """Inputs of kind ``number`` of `INPUTS` for the in and inout parameters of a graph."""
    rng = np.random.default_rng((seed, number))
    _, floats, (low, high) = INPUTS[number]
    out = {}
    for p in graph.params:
        if p.role == "out":
            continue
        kind = DTYPES[p.dtype].kind
        dtype = numpy_of(p.dtype)
        with np.errstate(all="ignore"):
            if kind == "float":
                out[str(p.name)] = floats(p, rng).astype(dtype)
            elif kind == "bool":
                out[str(p.name)] = rng.integers(0, 2, p.size).astype(dtype)
            else:
                lowest = 0 if dtype.kind == "u" else low
                out[str(p.name)] = rng.integers(lowest, high + 1, p.size).astype(dtype)
    return out


class Reference:
    """A graph and what it computes on every kind of input, each computed once."""

    def __init__(self, graph: IGraph, seed: int = 0) -> None:
        self.graph, self.seed = graph, seed
        #: The same for `uir_tvm.verify.equivalent`, which is what is put to the test.
        self.held = verify.EquivalenceReference(graph, full=True)
        self._results: dict[int, list[Array] | None] = {}

    def result(self, number: int) -> list[Array] | None:
        """The outputs; None where the graph itself is undefined on such inputs."""
        if number not in self._results:
            try:
                self._results[number] = interpreter.run(self.graph, inputs_of(self.graph, number, self.seed))
            except UirError:
                self._results[number] = None
        return self._results[number]

    def difference(self, other: IGraph) -> str:
        """On which kind of input, and how, another graph differs; "" when it does not."""
        roles = [(str(p.name), str(p.dtype), str(p.role)) for p in self.graph.params]
        if [(str(p.name), str(p.dtype), str(p.role)) for p in other.params] != roles:
            return "another signature"
        for number, (name, _, _) in enumerate(INPUTS):
            wanted = self.result(number)
            if wanted is None:
                continue
            given = {
                k: _fitted(a, other.pointer(k)) for k, a in inputs_of(self.graph, number, self.seed).items()
            }
            try:
                got = interpreter.run(other, given)
            except UirError as error:
                return f"{name} inputs: {error.what}"
            for a, b in zip(got, wanted, strict=True):
                if not same_bits(a, b):
                    return f"{name} inputs: other values"
        return ""


def _fitted(array: Array, pointer: IPointer) -> Array:
    """The input for a pointer that may have lost or gained elements at its end."""
    out = np.zeros(pointer.size, array.dtype)
    flat = array.reshape(-1)[: pointer.size]
    out[: flat.size] = flat
    return out


def same_bits(a: Any, b: Any) -> bool:
    """Equal to the bit, but for which NaN a NaN is."""
    a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    equal = a.view(np.uint8).reshape(a.size, -1) == b.view(np.uint8).reshape(b.size, -1)
    with np.errstate(all="ignore"):
        both_nan = (a != a) & (b != b)
    return bool((equal.all(axis=1) | both_nan).all())
