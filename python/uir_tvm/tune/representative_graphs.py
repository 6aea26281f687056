# SPDX-License-Identifier: Apache-2.0
"""iGraphs that leave sizes open, as cost models take them: at each of a task's representative sizes."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..explain.analytic import distance
from ..igraph import IGraph
from ..igraph.sizes import at
from ..igraph.tir_sizes import sizes_at
from ..schedule.size_points import SizePoint

if TYPE_CHECKING:
    from .job import Result

#: Static graphs that are remembered: searches ask for the same ones again and again.
REMEMBERED = 4096


class Predictor(Protocol):
    """Expects seconds of iGraphs, as `uir_tvm.tune.cost_model.CostModel` does."""

    def predict(self, graphs: Sequence[IGraph]) -> Sequence[float] | np.ndarray:
        """Seconds, or anything else that orders them: lower is faster."""
        ...


@functools.lru_cache(REMEMBERED)
def _at(graph: IGraph, sizes: tuple[tuple[str, int], ...]) -> IGraph:
    return at(graph, sizes_at((size.name for size in graph.sizes), dict(sizes)))


def graph_at(graph: IGraph, point: SizePoint) -> IGraph:
    """The static graph that a kernel's graph is at some sizes of the kernel."""
    return _at(graph, tuple(point.sizes.items()))


def bound_of(graph: IGraph, points: Sequence[SizePoint]) -> float:
    """Seconds of a graph's roofline, weighted over representative sizes; 0 where they are not known."""
    if not points:
        return distance(graph, 1.0) or 0.0
    bounds = [distance(graph_at(graph, point), 1.0) or 0.0 for point in points]
    return sum(p.weight * b for p, b in zip(points, bounds, strict=True)) if all(bounds) else 0.0


def learned_of(
    origin: str, points: Sequence[SizePoint], graphs: Sequence[IGraph], results: Sequence[Result]
) -> Iterator[tuple[str, list[IGraph], list[float]]]:
    """What a cost model learns of measured schedules of a task: origin, graphs and seconds, for each size."""
    right = [(graph, result) for graph, result in zip(graphs, results, strict=True) if result.ok]
    if not points:
        yield origin, [graph for graph, _ in right], [result.median for _, result in right]
    for number, point in enumerate(points):
        at_it = [graph_at(graph, point) for graph, _ in right]
        yield f"{origin} {number}", at_it, [result.medians[number] for _, result in right]


class AtSizes:
    """Expects seconds of graphs that leave sizes open, as candidates are scored.

    That is by the weighted ratios to the default's seconds at each size.

    Parameters
    ----------
    model : Predictor
    points : sequence of SizePoint
    default : IGraph, optional
        Of the compiler's own schedule; where that is refused, the first graph of each call takes its place.
    """

    def __init__(self, model: Predictor, points: Sequence[SizePoint], default: IGraph | None) -> None:
        self.model, self.points, self.default = model, points, default

    def predict(self, graphs: Sequence[IGraph]) -> np.ndarray:
        """See `Predictor.predict`."""
        total, mean = np.zeros(len(graphs)), 0.0
        for point in self.points if graphs else ():
            default = graphs[0] if self.default is None else self.default
            own, *others = self.model.predict([graph_at(graph, point) for graph in (default, *graphs)])
            total += point.weight * np.asarray(others, dtype="float64") / own
            mean += point.weight * float(own)
        return total * mean
