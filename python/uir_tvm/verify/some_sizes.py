# SPDX-License-Identifier: Apache-2.0
"""A handful of sizes at which a graph is run: the least, around its tiles, a prime, a moderate number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..igraph.affine import Affine
from ..igraph.nodes import IGraph, Loop
from ..igraph.size_names import follows, value_of
from ..igraph.space import Size
from .sized_launch import PID

#: Elements of all parameters together beyond which a choice of sizes is left out, and choices at most.
MAX_ELEMENTS = 1 << 18
MAX_CHOICES = 8
PRIME, MODERATE = 37, 100


def some_sizes(graph: IGraph, limit: int = MAX_ELEMENTS) -> list[dict[str, int]]:
    """Choices of the sizes of a graph, every parameter with an element at least, all with at most ``limit``.

    Each size in turn takes its special values, while the others go on with their own.
    """
    values = [list(_values(size, _tiles(graph, str(size.name)))) for size in graph.sizes]
    names = [str(size.name) for size in graph.sizes]
    found: dict[tuple[int, ...], None] = {}
    for turn in range(max(map(len, values), default=0)):
        for shift in range(len(values)):
            drawn = [own[(turn + shift * k) % len(own)] for k, own in enumerate(values)]
            chosen = _of_one_call(graph, dict(zip(names, drawn, strict=True)))
            if chosen is not None and 0 < _elements(graph, dict(zip(names, chosen, strict=True))) <= limit:
                found[chosen] = None
    return [dict(zip(names, chosen, strict=True)) for chosen in list(found)[:MAX_CHOICES]]


def _of_one_call(graph: IGraph, sizes: dict[str, int]) -> tuple[int, ...] | None:
    """Sizes of which those that follow from others do; None where one of these has no such value."""
    free = {name: value for name, value in sizes.items() if not follows(name)}
    found = []
    for size in graph.sizes:
        try:
            value = value_of(str(size.name), free)
        except KeyError:
            value = sizes[str(size.name)]
        if not size.low <= value <= size.high or value % size.multiple_of:
            return None
        found.append(value)
    return tuple(found)


def _elements(graph: IGraph, sizes: dict[str, int]) -> int:
    """Elements of all parameters; 0 where one has none."""
    counts = [p.elements.evaluate(sizes) for p in graph.params]
    return sum(counts) if all(count > 0 for count in counts) else 0


def _values(size: Size, tiles: Sequence[int]) -> Iterator[int]:
    """The values to try of one size, the most telling first."""
    tile = max(tiles, default=1)
    wanted = [tile + 1, int(size.low), 1, tile - 1, tile, PRIME, MODERATE, *tiles, 2 * tile + 1]
    by = int(size.multiple_of)
    seen: dict[int, None] = {}
    for value in wanted:
        near = max(-(-value // by), -(-int(size.low) // by))
        seen[min(near, int(size.high) // by) * by] = None
    yield from (value for value in seen if value > 0)


def _tiles(graph: IGraph, name: str) -> list[int]:
    """How far tiles along a size go, as far as divisions and steps of pid and loops say; largest last."""
    found: set[int] = set()
    exprs = [dim for p in graph.pointers for dim in p.dims]
    exprs += [] if graph.groups is None else [graph.groups]
    exprs += [
        bound
        for iop, _ in graph.walk()
        for piece in iop.slices()
        for bound in piece.valid
        if bound is not None
    ]
    loops = {str(loop.var) for _, around in graph.walk() for loop in around if isinstance(loop, Loop)}
    for value in exprs:
        if name in value.variables():
            found |= set(_steps(value, {PID, *loops}))
    return sorted(step for step in found if 1 < step <= math.isqrt(MAX_ELEMENTS))


def _steps(value: Affine, units: set[str]) -> Iterator[int]:
    for term in value.terms:
        if term.kind != "var":
            yield int(term.divisor)
            yield from _steps(term.argument, units)
        elif str(term.var) in units:
            yield abs(int(term.coeff))
