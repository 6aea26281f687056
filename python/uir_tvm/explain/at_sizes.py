# SPDX-License-Identifier: Apache-2.0
"""Graphs with sizes, which figures are told of at one choice of them."""

from __future__ import annotations

from collections.abc import Mapping

from ..igraph.nodes import IGraph
from ..igraph.sizes import at


def usual_sizes(graph: IGraph) -> dict[str, int]:
    """A value for each of a graph's sizes (`Size.usual`)."""
    return {str(size.name): size.usual for size in graph.sizes}


def at_sizes(graph: IGraph, sizes: Mapping[str, int] | None = None) -> tuple[IGraph, dict[str, int]]:
    """The static graph that figures are told of, and the sizes at which it is that.

    Parameters
    ----------
    sizes : mapping of str to int, optional
        Default: `usual_sizes`.

    Raises
    ------
    IGraphError
        Sizes that the graph does not take.
    """
    chosen = usual_sizes(graph) if sizes is None else {name: int(value) for name, value in sizes.items()}
    return at(graph, chosen), chosen
