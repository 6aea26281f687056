# SPDX-License-Identifier: Apache-2.0
"""Coverage: every element of every output is written, and none by two units.

Elements of an ``inout`` parameter may stay as they are, but no two units may write one.  Where a
scatter writes, the data decides which elements are written: its pointer is exempt, and the interpreter
and the tests of the operator answer for it.

Three ways to the answer, each exact, the cheapest first: the writes are mixed-radix tilings; isl's
relation of units and elements; marking every element in an array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy
import numpy as np

from ..errors import VerifyError
from ..igraph.nodes import IPointer
from ..igraph.text import print_iop
from . import isl
from .access import Access, Program
from .bounds import MAX_POINTS
from .describe import where
from .region import PID
from .tiling import proves, tiling_of

#: Points that are enumerated at once.
CHUNK = 1 << 20


class Gap:
    """An element that no unit writes."""

    def __init__(self, element: int) -> None:
        self.element = element


class Clash:
    """An element that two units write."""

    def __init__(self, element: int, first: int, second: int) -> None:
        self.element, self.first, self.second = element, first, second


class Unproved:
    """Too large for every method."""


Finding = Gap | Clash | Unproved


def check(program: Program) -> Iterator[VerifyError]:
    """Every output parameter with an element that no unit or that two units write."""
    for pointer in program.graph.params:
        if pointer.role == "in":
            continue
        writes = [a for a in program.by_pointer[str(pointer.name)] if a.kind == "write"]
        if not all(a.certain for a in writes):
            continue  # the data decides; see above
        finding = find(writes, int(pointer.size), complete=pointer.role == "out")
        if finding is not None:
            yield _error(pointer, writes, finding)


def find(writes: Sequence[Access], size: int, complete: bool) -> Finding | None:
    """What is wrong with the writes of a pointer of ``size`` elements; None when nothing is."""
    distinct = list({a.region.key: a for a in writes}.values())
    if not distinct:
        return Gap(0) if complete else None
    tilings = [tiling_of(a.region) for a in distinct]
    known = [t for t in tilings if t is not None]
    if len(known) == len(tilings) and proves(known, size, complete):
        return None
    try:
        return isl.bounded(lambda: _by_isl(distinct, size, complete))
    except isl.Exhausted:
        return _by_marking(distinct, size, complete)


def _by_isl(writes: Sequence[Access], size: int, complete: bool) -> Finding | None:
    written: islpy.Map | None = None
    for access in writes:
        one = isl.relation(access.region)
        written = one if written is None else written.union(one)
    assert written is not None
    if complete:
        unwritten = isl.elements(size).subtract(written.range())
        if not unwritten.is_empty():
            return Gap(isl.minimum(unwritten))
    owners = written.reverse()
    if owners.is_single_valued():
        return None
    for element in _ambiguous(written, owners):
        units = owners.intersect_domain(islpy.Set.read_from_str(isl.context(), f"{{ [{element}] }}")).range()
        return Clash(element, isl.minimum(units), isl.maximum(units))
    return None


def _ambiguous(written: islpy.Map, owners: islpy.Map) -> Iterator[int]:
    """Elements with two owners: those of a unit that another, later one writes too."""
    pairs = written.apply_range(owners)  # unit -> units that write an element of it
    later = islpy.Map.read_from_str(isl.context(), "{ [p] -> [q] : p < q }")
    found = isl.sample(pairs.intersect(later).wrap())
    if found is not None:
        first, second = (islpy.Set.read_from_str(isl.context(), f"{{ [{p}] }}") for p in found)
        both = written.intersect_domain(first).range().intersect(written.intersect_domain(second).range())
        yield isl.minimum(both)


def _by_marking(writes: Sequence[Access], size: int, complete: bool) -> Finding | None:
    kept = [[PID, *(v for v in a.region.used if v != PID)] for a in writes]
    num_points = sum(a.region.num_points(v) for a, v in zip(writes, kept, strict=True))
    if max(num_points, size) > MAX_POINTS:
        return Unproved()
    owner = np.full(size, -1, dtype=np.int32)
    for access, variables in zip(writes, kept, strict=True):
        region = access.region
        i = np.arange(region.rows.extent, dtype=np.int64)[None, :, None]
        j = np.arange(region.cols.extent, dtype=np.int64)[None, None, :]
        per_env = region.rows.extent * region.cols.extent
        for env in region.grids(variables, max(CHUNK // per_env, 1)):
            r0, r1, c0, c1 = (ends[:, None, None] for ends in region.box(env))
            base = np.broadcast_to(region.base.values(env), env[PID].shape)[:, None, None]
            valid = (i >= r0) & (i < r1) & (j >= c0) & (j < c1)
            address = (base + i * region.rows.stride + j * region.cols.stride)[valid]
            unit = np.broadcast_to(env[PID][:, None, None], valid.shape)[valid].astype(np.int32)
            before = owner[address]
            clash = (before >= 0) & (before != unit)
            owner[address] = unit
            clash |= owner[address] != unit
            if clash.any():
                at = int(clash.argmax())
                others = {int(before[at]), int(owner[address[at]])} - {-1, int(unit[at])}
                first, second = sorted((int(unit[at]), others.pop()))
                return Clash(int(address[at]), first, second)
    if complete and (owner < 0).any():
        return Gap(int((owner < 0).argmax()))
    return None


def _error(pointer: IPointer, writes: Sequence[Access], finding: Finding) -> VerifyError:
    name, size = str(pointer.name), int(pointer.size)
    if isinstance(finding, Unproved):
        return VerifyError(
            f"It is not proved that every element of '{name}' is written, and by one unit.",
            rule="coverage",
            where="; ".join(where(a.iop, a.slice) for a in writes[:3]),
            need="an exact answer",
            limit=f"{isl.MAX_OPERATIONS} operations of isl, {MAX_POINTS} points by enumeration",
            remedy="write the offsets as sums of pid and loop variables with constant coefficients",
        )
    if isinstance(finding, Gap):
        if not writes:
            return VerifyError(
                f"Nothing writes the output '{name}'.",
                rule="coverage",
                where=f"'{name}' of {size} elements",
                remedy=f"end the graph with a move into '{name}', or give it the role in or tmp",
            )
        return VerifyError(
            f"No unit writes element {finding.element} of the output '{name}'.",
            rule="coverage",
            where="; ".join(where(a.iop, a.slice) for a in writes[:3]),
            witness={"element": finding.element},
            need=f"all {size} elements written",
            remedy="widen the slices, their valid rows and cols or the loop extents so that they reach this "
            "element, or make the parameter inout if it is to keep its old values",
        )
    both = [a for a in writes if _touches(a, finding.element)]
    return VerifyError(
        f"Units {finding.first} and {finding.second} both write element {finding.element} of '{name}'.",
        rule="coverage",
        where="; ".join(where(a.iop, a.slice) for a in both[:2]) or print_iop(writes[0].iop),
        witness={"element": finding.element, "pid": finding.first, "other_pid": finding.second},
        need="one writing unit per element",
        remedy="make the offset advance with pid by what one unit writes, or end each unit's valid rows "
        "and cols where the next unit begins",
    )


def _touches(access: Access, element: int) -> bool:
    try:
        found = isl.points(access.region, access.region.used, f"a = {element}")
        return isl.bounded(lambda: not found.is_empty())
    except isl.Exhausted:
        return True
