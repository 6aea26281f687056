# SPDX-License-Identifier: Apache-2.0
"""Form of sizes: names, ranges, and what may depend on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

from ..errors import VerifyError
from ..igraph.affine import Affine
from ..igraph.coordinates import joined_dims, step_along
from ..igraph.dealt import is_dealt
from ..igraph.nodes import IGraph, IPointer, ISlice
from ..igraph.rewrite import loop_variables
from ..igraph.space import NUMBER_LIMIT, Size, Space
from ..igraph.text import print_iop, print_slice
from . import isl
from .access import Step
from .sized_launch import PID, SizedLaunch


def check(graph: IGraph) -> Iterator[VerifyError]:
    """Every size that is none, and every dimension or number of groups that is not one of sizes."""
    faults = [*_names(graph), *(fault for size in graph.sizes for fault in _range(size))]
    yield from faults
    if faults:
        return
    space = Space({str(size.name): size for size in graph.sizes})
    for pointer in graph.pointers:
        if pointer.dims:
            yield from _pointer(graph, pointer, space)
    if graph.groups is not None:
        where = f"parallel ({graph.groups}, {graph.num_units})"
        known = yield from _expression(graph, graph.groups, "number of groups", where, space)
        greatest = space.range(graph.groups)[1] if known else graph.num_groups
        if greatest < graph.num_groups or (greatest > graph.num_groups and not is_dealt(graph)):
            yield _fault(
                f"The graph '{graph.name}' has up to {greatest} groups, but says {graph.num_groups}.",
                where=where,
                need="num_groups is the greatest number of groups; fewer where a loop deals them",
            )


def strides(step: Step, operand: str, piece: ISlice) -> Iterator[VerifyError]:
    """Strides that sizes decide: of moves from and to dram, and of the rows of a table that data names; along
    a dimension of the pointer.
    """
    if not piece.open_strides:
        return
    dims = joined_dims(piece.pointer.dims)
    for side, stride in zip(("rows", "columns"), piece.stride, strict=True):
        if not isinstance(stride, Affine):
            continue
        own = set(stride.variables()) <= set(step.launch.names)
        walks = step.spec.copies or (operand == step.spec.by_data and side == "rows")
        if walks and own and len(dims) > 1 and (step_along(stride, dims) or (0, 0))[1] > 0:
            continue
        yield _fault(
            f"The {side} of a slice of '{piece.pointer.name}' are {stride} apart.",
            where=f"{print_slice(piece)} in {print_iop(step.iop)}",
            need="a number; of moves with dram and of rows of tables also one times a dimension's stride",
            remedy="let a loop walk them",
        )


def _fault(what: str, **parts: Any) -> VerifyError:
    return VerifyError(what, rule="form", **parts)


def _names(graph: IGraph) -> Iterator[VerifyError]:
    loops = set(loop_variables(graph.body))
    for name, count in Counter(str(size.name) for size in graph.sizes).items():
        other = "the number of the unit" if name == PID else "a loop variable" if name in loops else ""
        if count > 1 or other:
            yield _fault(
                f"{count} sizes are named '{name}'."
                if count > 1
                else f"The size '{name}' has the name of {other}.",
                where="the graph's sizes",
                need="a name of its own for every size and loop of a graph",
                remedy="rename one of them",
            )


def _range(size: Size) -> Iterator[VerifyError]:
    low, high, by = int(size.low), int(size.high), int(size.multiple_of)
    where = f"size {size.name} = [{low}, {high}, {by}]"
    if by < 1:
        yield _fault(
            f"The size '{size.name}' is said to be a multiple of {by}.", where=where, need="at least 1"
        )
    elif low < 0 or high // by * by < low:
        yield _fault(
            f"The size '{size.name}' admits no value."
            if low >= 0
            else f"The size '{size.name}' may be negative.",
            where=where,
            need="0 <= low <= high, and a multiple of its divisor between",
        )
    elif high > NUMBER_LIMIT:
        yield _fault(f"The size '{size.name}' may reach {high}.", where=where, limit=f"{NUMBER_LIMIT}")


def _pointer(graph: IGraph, pointer: IPointer, space: Space) -> Iterator[VerifyError]:
    dims = ", ".join(map(str, pointer.dims))
    where = f"{pointer.name} = iPointer({pointer.level}, {pointer.dtype}, ({dims}), {pointer.role})"
    if pointer.level != "dram":
        yield _fault(
            f"The pointer '{pointer.name}' lies in {pointer.level}, but has dimensions that sizes decide.",
            where=where,
            need="a static number of elements of reg and sram",
            remedy="make it as large as the tiles that it holds",
        )
    for dim in pointer.dims:
        known = yield from _expression(graph, dim, f"dimension of '{pointer.name}'", where, space)
        if not known:
            return
    greatest = math.prod(max(space.range(dim)[1], 0) for dim in pointer.dims)
    if greatest != pointer.size:
        yield _fault(
            f"The pointer '{pointer.name}' has up to {greatest} elements, but says {pointer.size}.",
            where=where,
            need="size is the greatest number of elements",
            remedy="make it by igraph.sizes.dram",
        )


def _expression(
    graph: IGraph, value: Affine, what: str, where: str, space: Space
) -> Generator[VerifyError, None, bool]:
    """The faults of an expression of sizes; whether its values are known."""
    names = [str(size.name) for size in graph.sizes]
    for name in value.variables():
        if name not in names:
            yield _fault(
                f"The {what} depends on '{name}', which is no size of the graph.",
                where=where,
                need="one of " + (", ".join(names) or "no sizes: the graph is static"),
            )
            return False
    if not value.is_affine:
        yield _fault(
            f"The {what} is {value}, which has a product of sizes.",
            where=where,
            need="an affine expression of sizes",
            remedy="give the product a size of its own",
        )
        return False
    if space.magnitude(value) > NUMBER_LIMIT:
        yield _fault(
            f"The {what} may reach {space.magnitude(value)}.",
            where=where,
            limit=f"numbers up to {NUMBER_LIMIT}, with every part of a sum",
            remedy="give the sizes smaller upper bounds",
        )
        return False
    if (
        space.range(value)[0] < 0
        and (values := _negative(value, SizedLaunch(tuple(graph.sizes)))) is not None
    ):
        yield _fault(
            f"The {what} may be negative.", where=where, witness=values, need="0 or more for all sizes"
        )
        return False
    return True


def _negative(value: Affine, launch: SizedLaunch) -> dict[str, int] | None:
    """Sizes at which an expression is negative, none where that is not known; None where it never is."""

    def found() -> dict[str, int] | None:
        negative = isl.elements(-value, launch)
        return None if negative.is_empty() else isl.least_sizes(negative, launch)

    try:
        return isl.bounded(found)
    except isl.Exhausted:
        return {}
