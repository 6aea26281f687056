# SPDX-License-Identifier: Apache-2.0
"""Graphs whose sizes are known only when they are launched: their memory, and what they are at given sizes.

A graph with sizes stands for one static graph for each admissible choice of them; `at` makes that graph.
What the verifier proves of a graph with sizes holds for all of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import IGraphError, SizeError
from .affine import Affine, AffineLike, affine
from .coordinates import joined_dims
from .dealt import ended, left, rounds_at
from .iops import spec_of
from .nodes import IGraph, IOp, IPointer, ISlice, Loop
from .rewrite import map_slices, substituted
from .space import Size, Space


def dram(name: str, dtype: str, dims: Sequence[AffineLike], sizes: Sequence[Size], role: str) -> IPointer:
    """A dram pointer of dimensions that sizes decide, row-major.

    Parameters
    ----------
    dims : sequence of int or Affine
        Expressions of ``sizes``; where all are numbers the pointer is a static one.

    Raises
    ------
    IGraphError
        The greatest number of elements leaves 64 bits.
    """
    expressions = [affine(dim) for dim in dims]
    space = Space({str(size.name): size for size in sizes})
    size = math.prod(max(space.range(dim)[1], 0) for dim in expressions)
    if size >= 1 << 63:
        raise IGraphError(
            f"The pointer {name} has up to {size} elements.",
            where=" x ".join(map(str, expressions)),
            limit="fewer than 2^63",
            remedy="give the sizes smaller upper bounds",
        )
    static = all(dim.is_constant for dim in expressions)
    return IPointer(name, "dram", dtype, size, role, [] if static else expressions)


def whole_slice(pointer: IPointer) -> ISlice:
    """All of a pointer as one row; where sizes decide its elements, valid up to their end.

    Of a pointer with several open dimensions it is the first element, where there is one.
    """
    size = int(pointer.size)
    if not pointer.dims:
        return ISlice(pointer, 0, (1, size))
    dims = joined_dims(pointer.dims)
    if len(dims) > 1:
        return ISlice(pointer, 0, (1, 1), rows=(None, dims[0]), cols=(None, dims[-1]))
    return ISlice(pointer, 0, (1, max(size, 1)), cols=(None, pointer.elements))


def known(graph: IGraph, loops: Sequence[Loop] = ()) -> dict[str, int | Size]:
    """What is known of the variables of expressions at a place of a graph: pid, the loops around it, the
    sizes.

    Of pid it is the greatest extent that sizes admit.
    """
    sizes = {str(size.name): size for size in graph.sizes}
    return {"pid": int(graph.num_parallel), **{str(n.var): int(n.extent) for n in loops}, **sizes}


def checked_sizes(graph: IGraph, sizes: Mapping[str, int]) -> dict[str, int]:
    """The values of all sizes of a graph, in the graph's order.

    Raises
    ------
    IGraphError
        A size without a value, a value for what is no size, or one that the size does not admit.
    """
    names = [str(size.name) for size in graph.sizes]
    if sorted(names) != sorted(sizes):
        raise IGraphError(
            f"Values are given for {', '.join(sorted(sizes)) or 'no size'}.",
            where=graph.name,
            need=", ".join(names) or "no sizes: the graph is static",
        )
    for size in graph.sizes:
        size.check(int(sizes[str(size.name)]))
    return {name: int(sizes[name]) for name in names}


def admitted(name: str, sizes: Sequence[Size], values: Mapping[str, int]) -> dict[str, int]:
    """The values of all sizes of a kernel, in order, as a call passes them.

    Parameters
    ----------
    name : str
        Of the kernel.

    Raises
    ------
    SizeError
        A size without a value, a value for what is no size, or one that the size does not admit.
    """
    names = [str(size.name) for size in sizes]
    if sorted(names) != sorted(values):
        raise SizeError(
            f"`{name}` was given values for {', '.join(sorted(values)) or 'no size'}.",
            need=", ".join(names) or "no sizes: the kernel is static",
        )
    for size in sizes:
        try:
            size.check(int(values[str(size.name)]))
        except IGraphError as error:
            raise SizeError(error.what, where=name, need=error.need, remedy=error.remedy) from error
    return {each: int(values[each]) for each in names}


def elements_at(pointer: IPointer, sizes: Mapping[str, int]) -> int:
    """How many elements a pointer has at given sizes."""
    if not pointer.dims:
        return int(pointer.size)
    return math.prod(dim.evaluate(sizes) for dim in pointer.dims)


def at(graph: IGraph, sizes: Mapping[str, int]) -> IGraph:
    """The static graph that a graph is at given sizes.

    Parameters
    ----------
    sizes : mapping of str to int
        A value for each of ``graph.sizes``.

    Raises
    ------
    IGraphError
        As `checked_sizes`; or a size makes the number of groups negative.
    """
    env = checked_sizes(graph, sizes)
    if not env:
        return graph
    numbers: dict[str, Affine] = {name: affine(value) for name, value in env.items()}
    groups = int(graph.num_groups) if graph.groups is None else graph.groups.evaluate(env)
    if groups < 0:
        raise IGraphError(f"The graph has {groups} groups at {env}.", where=graph.name, need="0 or more")
    pointers = {str(p.name): _pointer_at(p, env) for p in graph.pointers}

    def placed(piece: ISlice) -> ISlice:
        return piece.replace(pointer=pointers[str(piece.pointer.name)])

    def node_at(node: Any, around: tuple[Loop, ...] = ()) -> Loop | IOp:
        if isinstance(node, Loop):
            inside = (*around, node)
            return Loop(node.var, node.extent, [node_at(n, inside) for n in node.body], node.attrs)
        tiles = left(affine(groups), int(graph.num_parallel), around)
        return map_slices(node if tiles is None else _begun(node, tiles), placed)

    body = [node_at(substituted(node, numbers)) for node in ended(graph.body, rounds_at(graph, env))]
    return graph.replace(
        num_groups=min(groups, int(graph.num_groups)),
        pointers=list(pointers.values()),
        body=body,
        sizes=(),
        groups=None,
    )


def _begun(iop: IOp, tiles: Affine) -> IOp:
    """An iOp whose boxes begin behind their ends where no tiles are left: no loop of a static graph ends
    for some units before others.
    """
    if not spec_of(iop).touches:
        return iop
    most = max(int(piece.rows) for piece in iop.slices())

    def piece(each: ISlice) -> ISlice:
        begin = (1 - tiles) * most if each.row_begin is None else each.row_begin
        return each.replace(rows=(begin, each.row_end))

    return map_slices(iop, piece)


def _pointer_at(pointer: IPointer, env: Mapping[str, int]) -> IPointer:
    if not pointer.dims:
        return pointer
    return IPointer(pointer.name, pointer.level, pointer.dtype, elements_at(pointer, env), pointer.role)
