# SPDX-License-Identifier: Apache-2.0
"""The units of a graph with sizes whose tiles are full: they need none of the bounds that sizes set.

All units but the last few have full tiles, so a kernel asks once and then runs code without bounds, as if its
sizes were numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...igraph.affine import Affine, affine
from ...igraph.nodes import IGraph, ISlice, map_iops
from ...igraph.rewrite import map_slices


@attrs.frozen
class FullTiles:
    """A graph for units whose tiles are full, and what is at least 0 exactly where a unit is one of these.

    Attributes
    ----------
    graph : IGraph
        Without the bounds that sizes set.
    conditions : tuple of Affine
        Of sizes and pid: all are at least 0.
    """

    graph: IGraph
    conditions: tuple[Affine, ...]


def full_tiles(graph: IGraph) -> FullTiles | None:
    """The graph for full tiles; None where sizes set no bounds that such conditions can say."""
    sizes = {str(size.name) for size in graph.sizes}
    extents = {str(loop.var): int(loop.extent) for _, around in graph.walk() for loop in around}
    conditions: dict[Affine, None] = {}

    def kept(bound: Affine | None, room: Affine | None) -> Affine | None:
        """The bound, None where a condition takes its place: what is left of the tile there, at least 0."""
        if bound is None or room is None or not sizes & set(bound.variables()):
            return bound
        least = _least(room, extents)
        if least is None:
            return bound
        conditions[least] = None
        return None

    def freed(piece: ISlice) -> ISlice:
        begin, end, left, right = piece.valid
        rows, cols = int(piece.rows), int(piece.cols)
        return piece.replace(
            rows=(kept(begin, None if begin is None else affine(0) - begin), kept(end, _room(end, rows))),
            cols=(kept(left, None if left is None else affine(0) - left), kept(right, _room(right, cols))),
        )

    body = map_iops(graph.body, lambda iop: map_slices(iop, freed))
    return FullTiles(graph.replace(body=body), tuple(conditions)) if conditions else None


def _room(end: Affine | None, extent: int) -> Affine | None:
    return None if end is None else end - extent


def _least(value: Affine, extents: Mapping[str, int]) -> Affine | None:
    """The least value over all rounds of the loops; None where it is not seen."""
    least = value
    for term in value.terms:
        inside = set(term.expr.variables()) & set(extents)
        if not inside:
            continue
        if term.kind != "var":
            return None
        last = extents[str(term.var)] - 1
        least = least.substitute({str(term.var): affine(last if term.coeff < 0 else 0)})
    return least


__all__ = ["FullTiles", "full_tiles"]
