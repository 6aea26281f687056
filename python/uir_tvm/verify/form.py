# SPDX-License-Identifier: Apache-2.0
"""Form: names, loops, variables, pointers and roles are as an iGraph's must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from math import prod
from typing import Any

from ..errors import VerifyError
from ..igraph.affine import Affine, affine
from ..igraph.coordinates import joined_dims
from ..igraph.dtypes import DTYPES
from ..igraph.iops import LEVELS, spec_of
from ..igraph.nodes import ROUNDS, IGraph, IOp, IPointer, ISlice, Loop
from ..igraph.space import NUMBER_LIMIT, Space
from ..igraph.text import print_iop, print_slice
from . import form_sizes
from .access import GraphFacts, Step
from .placement import sram_bytes
from .region import PID

#: Tells where a fault is; a call, since the text of an iOp costs more than its check.
Where = Callable[[], str]

ROLES = ("in", "out", "inout", "tmp")


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every fault of form."""
    graph = facts.graph
    yield from _parallel(graph)
    of_sizes = list(form_sizes.check(graph))
    yield from of_sizes
    if of_sizes:
        return  # nothing is known of what depends on them
    yield from _pointers(graph)
    yield from _loops(graph.body, [], {PID, *(str(size.name) for size in graph.sizes)})
    listed = _Listed(graph.pointers)
    for step in facts.steps:
        if "well formed" in step.memo and all(listed.has(piece) for piece in step.iop.slices()):
            yield from _group(graph, step.iop, partial(print_iop, step.iop))
            continue
        faults = list(_iop(graph, step, listed))
        yield from faults
        if not faults:
            step.memo["well formed"] = True


def _fault(what: str, **parts: str) -> VerifyError:
    return VerifyError(what, rule="form", **parts)  # type: ignore[arg-type]


def _parallel(graph: IGraph) -> Iterator[VerifyError]:
    for field in ("num_groups", "num_units"):
        if getattr(graph, field) < 1:
            yield _fault(
                f"The graph '{graph.name}' has {field} = {getattr(graph, field)}.",
                where=f"parallel ({graph.num_groups}, {graph.num_units})",
                need="at least 1",
            )


def _pointers(graph: IGraph) -> Iterator[VerifyError]:
    for name, count in Counter(str(p.name) for p in graph.pointers).items():
        if count > 1:
            yield _fault(
                f"{count} pointers are named '{name}'.",
                where="the graph's pointers",
                remedy="rename all but one",
            )
    seen_other: str | None = None
    for p in graph.pointers:
        if p.is_param and seen_other is not None:
            yield _fault(
                f"The parameter '{p.name}' is listed after '{seen_other}', which is no parameter.",
                where="the graph's pointers",
                need="parameters first, in the order of the signature",
                remedy=f"move '{p.name}' before '{seen_other}'",
            )
        seen_other = seen_other if p.is_param else seen_other or str(p.name)
        yield from _pointer(graph, p)


def _pointer(graph: IGraph, p: IPointer) -> Iterator[VerifyError]:
    where = f"{p.name} = iPointer({p.level}, {p.dtype}, {p.size}, {p.role})"
    for what, value, known in (
        ("level", p.level, LEVELS),
        ("role", p.role, ROLES),
        ("dtype", p.dtype, DTYPES),
    ):
        if value not in known:
            yield _fault(
                f"The pointer '{p.name}' has the {what} '{value}'.",
                where=where,
                need="one of " + ", ".join(known),
            )
    if p.size < 1:
        yield _fault(
            f"The pointer '{p.name}' has {p.size} elements.",
            where=where,
            need="at least 1",
            remedy="drop the pointer and the iOps that use it",
        )
    if p.is_param and p.level != "dram":
        yield _fault(
            f"The parameter '{p.name}' lies in {p.level}.", where=where, need="dram, or the role tmp"
        )
    if p.level == "sram" and graph.hardware.sram_bytes == 0:
        yield _fault(
            f"The pointer '{p.name}' lies in sram, which {graph.hardware.name} has not.",
            where=where,
            limit=f"sram_bytes = 0 on {graph.hardware.name}",
            remedy="keep it in reg, or choose a hardware model whose units share sram",
        )
    elif p.level == "sram" and not sram_bytes(graph.hardware, int(graph.num_units)):
        units = graph.hardware.figures["sram_units"]
        yield _fault(
            f"The pointer '{p.name}' lies in sram, which a group of {graph.num_units} has not.",
            where=where,
            limit=f"groups of {units} units or more on {graph.hardware.name}",
            remedy=f"schedule it with num_units={units}, or keep it in reg",
        )
    if p.level == "sram" and graph.num_units > graph.hardware.num_units:
        yield _fault(
            f"{graph.num_units} units share '{p.name}', more than a group of {graph.hardware.name} has.",
            where=f"parallel ({graph.num_groups}, {graph.num_units})",
            limit=f"{graph.hardware.num_units} units in a group",
            remedy=f"use groups of at most {graph.hardware.num_units} units",
        )


def _loops(body: Sequence[Any], seen: list[str], known: Set[str]) -> Iterator[VerifyError]:
    for node in body:
        if not isinstance(node, Loop):
            continue
        var = str(node.var)
        if var == PID:
            yield _fault(
                "A loop variable is named 'pid', which is the number of the unit.",
                where=f"for {var} in {node.extent}",
                remedy="rename the loop variable",
            )
        elif var in seen:
            yield _fault(
                f"Two loops have the variable '{var}'.",
                where=f"for {var} in {node.extent}",
                need="a name of its own for every loop of a graph",
                remedy="rename one of them",
            )
        if node.extent < 1:
            yield _fault(
                f"The loop over '{var}' runs {node.extent} times.",
                where=f"for {var} in {node.extent}",
                need="an extent of at least 1",
                remedy="drop the loop",
            )
        seen.append(var)
        yield from _rounds(node, known)
        yield from _loops(node.body, seen, {*known, var})


def _rounds(loop: Loop, known: Set[str]) -> Iterator[VerifyError]:
    """Where a loop ends is said by what is known around it."""
    rounds = loop.attrs.get(ROUNDS)
    if rounds is not None and not (isinstance(rounds, Affine) and set(rounds.variables()) <= known):
        yield _fault(
            f"The loop over '{loop.var}' ends after {rounds} rounds.",
            where=f"for {loop.var} in {loop.extent}",
            need="an expression of pid, sizes and the loops around: " + ", ".join(sorted(known)),
            remedy="say the rounds by these, or drop the attribute",
        )


def _iop(graph: IGraph, step: Step, listed: _Listed) -> Iterator[VerifyError]:
    iop, bound = step.iop, {*step.extents, *step.launch.names}

    def text() -> str:
        return print_iop(iop)

    slices = [
        *(("target", piece) for piece in iop.targets),
        *((f"source{k}", piece) for k, piece in enumerate(iop.sources)),
        *(("attribute", v) for v in iop.attrs.values() if isinstance(v, ISlice)),
    ]
    unbound = False
    for operand, piece in slices:
        if _is_plain(piece, bound, listed):
            continue
        for fault in (*_slice(piece, text, bound, listed), *form_sizes.strides(step, operand, piece)):
            unbound = True
            yield fault
    for name, value in iop.attrs.items():
        if isinstance(value, Affine):
            yield from _variables(value, bound, partial(_attribute_text, name, value, text))
            yield from _affine(value, partial(_attribute_text, name, value, text))
    faults = [sentence for rule, sentence in step.problems if rule == "form"]
    for sentence in faults:
        yield _fault(f"An iOp is malformed: {sentence}.", where=text())
    if faults or unbound:
        return
    yield from _magnitude(step)
    for piece in iop.targets if spec_of(iop).touches else ():
        if piece.pointer.role == "in":
            yield _fault(
                f"{iop.op} writes '{piece.pointer.name}', an input.",
                where=text(),
                need="the role out, inout or tmp",
                remedy=f"give '{piece.pointer.name}' the role inout, or write elsewhere",
            )
    if spec_of(iop).barrier and iop.targets[0].pointer != iop.sources[0].pointer:
        yield _fault(
            f"sync names two pointers, '{iop.targets[0].pointer.name}' and '{iop.sources[0].pointer.name}'.",
            where=text(),
            need="slices of one pointer on both sides",
        )
    yield from _group(graph, iop, text)


class _Listed:
    """The pointers of a graph."""

    def __init__(self, pointers: Sequence[IPointer]) -> None:
        self.by_name = {str(p.name): p for p in pointers}
        self._handles = {p.__chandle__() for p in pointers}

    def has(self, piece: ISlice) -> bool:
        """Whether a slice is of the graph's pointer of that name."""
        if piece.pointer.__chandle__() in self._handles:
            return True
        pointer = self.by_name.get(str(piece.pointer.name))
        return pointer is not None and pointer == piece.pointer


def _is_plain(piece: ISlice, bound: set[str], listed: _Listed) -> bool:
    """Whether a slice has no fault of form, by what most slices are: strides are numbers."""
    return (
        listed.has(piece)
        and piece.rows >= 1
        and piece.cols >= 1
        and not piece.open_strides
        and all(
            value is None or value.is_constant or (value.is_affine and bound.issuperset(value.variables()))
            for value in (piece.offset, *piece.valid)
        )
    )


def _attribute_text(name: str, value: Affine, text: Where) -> str:
    return f"{name} = {value} in {text()}"


def _slice(piece: ISlice, text: Where, bound: set[str], listed: _Listed) -> Iterator[VerifyError]:
    def where() -> str:
        return f"{print_slice(piece)} in {text()}"

    name = str(piece.pointer.name)
    if not listed.has(piece):
        what = "is not among the graph's pointers"
        if name in listed.by_name:
            what = "differs from the graph's pointer of that name"
        yield _fault(
            f"The pointer '{name}' of a slice {what}.",
            where=where(),
            remedy="list it in IGraph.pointers, and use that very pointer in slices",
        )
    if piece.rows < 1 or piece.cols < 1:
        yield _fault(
            f"A slice of '{name}' has the shape ({piece.rows}, {piece.cols}).",
            where=where(),
            need="at least one row and one column",
        )
    yield from _variables(piece.offset, bound, where)
    if len(joined_dims(piece.pointer.dims)) < 2:
        yield from _affine(piece.offset, where)
    for value in piece.valid:
        if value is not None:
            yield from _variables(value, bound, where)
            yield from _affine(value, where)


def _magnitude(step: Step) -> Iterator[VerifyError]:
    """Numbers that other rules compute with 64 bits: points of the loops, addresses and bounds."""
    points = prod(step.extents.values())
    if points > NUMBER_LIMIT:
        yield _fault(
            f"The iOp stands at {points} points of pid and loops.",
            where=print_iop(step.iop),
            limit=f"{NUMBER_LIMIT} points",
            remedy="use loops of fewer iterations",
        )
    for operand, piece, region in step.operands:
        magnitude = partial(_most, region.space)
        spread = sum((a.extent - 1) * magnitude(affine(a.step)) for a in (region.rows, region.cols))
        largest = max(magnitude(region.offset) + spread, *map(magnitude, region.bounds), 0)
        if largest > NUMBER_LIMIT:
            yield _fault(
                f"The address or a bound of the {operand} of {step.iop.op} may reach {largest}.",
                where=f"{print_slice(piece)} in {print_iop(step.iop)}",
                limit=f"numbers up to {NUMBER_LIMIT}, with every part of a sum",
                remedy="use smaller strides or extents",
            )


def _most(space: Space, value: Affine) -> int:
    return abs(value.constant) if value.is_constant else space.magnitude(value)


def _variables(value: Affine, bound: set[str], where: Where) -> Iterator[VerifyError]:
    for var in value.variables():
        if var not in bound:
            yield _fault(
                f"The variable '{var}' is neither pid nor a size nor that of an enclosing loop.",
                where=where(),
                need="one of " + ", ".join(sorted(bound)),
                remedy=f"put the iOp into a loop over '{var}', or replace the variable",
            )


def _affine(value: Affine, where: Where) -> Iterator[VerifyError]:
    if not value.is_affine:
        yield _fault(
            f"The expression {value} has a product of variables.",
            where=where(),
            need="an affine expression: products are addresses of dram pointers of which several dimensions "
            "depend on sizes, and stand nowhere else",
            remedy="give the pointer its dimensions (igraph.sizes.dram), or the product a size of its own",
        )


def _group(graph: IGraph, iop: IOp, text: Where) -> Iterator[VerifyError]:
    if iop.attrs.get("scope") != "group" or spec_of(iop).barrier:
        return
    size = int(iop.attrs["group_size"])
    if size < 1 or graph.num_units % size:
        yield _fault(
            f"{iop.op} shares among {size} units, which do not divide a group of {graph.num_units}.",
            where=text(),
            need=f"group_size divides num_units = {graph.num_units}",
            remedy="choose one of "
            + ", ".join(str(d) for d in range(1, graph.num_units + 1) if graph.num_units % d == 0),
        )
    buffer = iop.attrs["buffer"].pointer
    if buffer.level != "sram":
        yield _fault(
            f"The buffer '{buffer.name}' lies in {buffer.level}.",
            where=text(),
            need="sram, which the units of a group share",
        )
