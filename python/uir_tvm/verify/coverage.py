# SPDX-License-Identifier: Apache-2.0
"""Coverage: every element of every output is written, and none by two units.

Elements of an ``inout`` parameter may stay as they are, but no two units may write one.  Where a
scatter writes, the data decides which elements are written: its pointer is exempt, and the interpreter
and the tests of the operator answer for it.

Three ways to the answer, each exact: the writes are mixed-radix tilings; every element is marked in an
array; isl's relation of units and elements, for outputs that are large.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
import islpy
import numpy as np

from ..errors import VerifyError
from ..igraph.affine import Affine, affine
from ..igraph.coordinates import joined_dims
from ..igraph.nodes import IPointer
from ..igraph.text import print_iop
from . import isl
from .access import Access, GraphFacts
from .decide import MAX_POINTS, Decision, Question, Rung, TooMany, decide
from .describe import budget, for_all, where
from .region import PID, Region
from .sized_launch import STATIC, SizedLaunch
from .tiling import proves, tiling_of

#: Points marked at once, and points up to which marking comes before isl (some tens of milliseconds).
CHUNK = 1 << 20
FEW_POINTS = 1 << 21


class Gap:
    """An element that no unit writes."""

    def __init__(self, element: int) -> None:
        self.element = element

    def scaled(self, block: int) -> Gap:
        """The same where an element stands for a block."""
        return Gap(self.element * block)


class Clash:
    """An element that two units write."""

    def __init__(self, element: int, first: int, second: int) -> None:
        self.element, self.first, self.second = element, first, second

    def scaled(self, block: int) -> Clash:
        """The same where an element stands for a block."""
        return Clash(self.element * block, self.first, self.second)


Finding = Gap | Clash


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every output parameter with an element that no unit or that two units write."""
    for pointer in facts.graph.params:
        if pointer.role == "in":
            continue
        writes = [a for a in facts.by_pointer[str(pointer.name)] if a.kind == "write"]
        if not all(a.certain for a in writes):
            continue  # the data decides; see above
        dims = joined_dims(pointer.dims)
        dims = dims if len(dims) > 1 else ()
        answer = find(writes, pointer.elements, pointer.role == "out", facts.launch, dims)
        facts.memo["coverage", str(pointer.name)] = answer
        if not answer.excluded:
            yield _error(pointer, writes, answer, facts.launch)


def find(
    writes: Sequence[Access],
    elements: Affine | int,
    complete: bool,
    launch: SizedLaunch = STATIC,
    dims: Sequence[Affine] = (),
) -> Decision[Finding]:
    """What is wrong with the writes of a pointer of so many elements; of such ``dims``, where they have
    strides of sizes.
    """
    size = affine(elements)
    distinct = list({a.region.key: a for a in writes}.values())
    if not distinct and (launch.static or not complete):
        return Decision(Gap(0) if complete else None, Rung.INTERVALS)
    if launch.static and tiled([a.region for a in distinct], size.constant, complete):
        return Decision(None, Rung.INTERVALS)
    block = 1 if dims else _block([a.region for a in distinct], size)
    regions = [_in_blocks(a.region, block) for a in distinct] if block > 1 else [a.region for a in distinct]
    question: Question[Finding] = _Uncovered(regions, size // block, complete, launch, tuple(dims))
    answer = decide(question, FEW_POINTS)
    return attrs.evolve(answer, found=answer.found and answer.found.scaled(block))


def tiled(regions: Sequence[Region], size: int, complete: bool) -> bool:
    """Whether it is seen at once that no element is of two units and, if ``complete``, all are of one."""
    distinct = {r.key: r for r in regions}.values()
    tilings = [tiling_of(r) for r in distinct]
    known = [t for t in tilings if t is not None]
    return len(known) == len(tilings) and proves(known, size, complete)


@attrs.frozen(eq=False)
class _Uncovered:
    """Is there an element of two units or, if ``complete``, of none?"""

    regions: Sequence[Region]
    size: Affine
    complete: bool
    launch: SizedLaunch = STATIC
    dims: tuple[Affine, ...] = ()

    @property
    def num_points(self) -> int:
        return num_points(self.regions)

    def excluded(self) -> bool:
        return False  # tilings were tried before blocks hid them

    def counterexamples(self) -> list[Callable[[], islpy.Set]]:
        # which unit it is that writes costs isl much in some cases, and saves it much in others
        return [self._wrong_apart, self._wrong_by_unit] if self.complete else [self._wrong_by_unit]

    def _wrong_apart(self) -> islpy.Set:
        """Elements that nobody writes, by all that is written; else pairs of units."""
        elements = isl.elements(self.size, self.launch, self.dims)
        for region in self.regions:
            elements = elements.subtract(isl.relation(region, ()).range())
        return self._pairs(_written(self.regions)) if elements.is_empty() else elements

    def _wrong_by_unit(self) -> islpy.Set:
        """The same, by what each unit writes."""
        written = _written(self.regions)
        unwritten = isl.elements(self.size, self.launch, self.dims).subtract(written.range())
        return unwritten if self.complete and not unwritten.is_empty() else self._pairs(written)

    def _pairs(self, written: islpy.Map) -> islpy.Set:
        owners = written.reverse()
        if owners.is_single_valued():
            return islpy.Set.empty(written.domain().get_space())
        return _pairs(written, owners)

    def at(self, sizes: Mapping[str, int]) -> _Uncovered:
        regions = [r.at(sizes) for r in self.regions]
        return _Uncovered(regions, affine(self.size.evaluate(sizes)), self.complete)

    def by_isl(self) -> Finding | None:
        if not self.regions:
            return Gap(0)
        return _by_isl(self.regions, self.size, self.complete)

    def by_points(self, few: bool) -> Finding | None:
        size = self.size.constant
        if size > MAX_POINTS:
            raise TooMany
        return _by_marking(self.regions, size, self.complete)


def _block(regions: Sequence[Region], size: Affine) -> int:
    """The largest block of neighbouring elements that all regions write whole or not at all."""
    block = math.gcd(size.constant, *(t.coeff for t in size.terms))
    for r in regions:
        if r.cols.stride != 1 or r.cols.lower or r.cols.upper:
            return 1
        row_stride = r.rows.stride if r.rows.extent > 1 else 0
        block = math.gcd(
            block, r.cols.extent, row_stride, r.offset.constant, *(t.coeff for t in r.offset.terms)
        )
    return block


def _in_blocks(region: Region, block: int) -> Region:
    rows = attrs.evolve(region.rows, stride=region.rows.stride // block)
    cols = attrs.evolve(region.cols, extent=region.cols.extent // block)
    return attrs.evolve(region, offset=region.offset // block, rows=rows, cols=cols)


def num_points(regions: Sequence[Region]) -> int:
    """How many points marking the regions looks at."""
    return sum(r.num_points(_with_pid(r)) for r in regions)


def _with_pid(region: Region) -> list[str]:
    return [PID, *(v for v in region.used if v != PID)]


def _written(regions: Sequence[Region]) -> islpy.Map:
    """``{ [pid] -> [address] }`` of all regions."""
    return functools.reduce(islpy.Map.union, map(isl.relation, regions))


def _by_isl(regions: Sequence[Region], size: Affine, complete: bool) -> Finding | None:
    written = _written(regions)
    if complete:
        unwritten = isl.elements(size).subtract(written.range())
        if not unwritten.is_empty():
            return Gap(isl.minimum(unwritten))
    owners = written.reverse()
    if owners.is_single_valued():
        return None
    for element in _ambiguous(written, owners):
        units = owners.intersect_domain(isl.read_set(f"{{ [{element}] }}")).range()
        return Clash(element, isl.minimum(units), isl.maximum(units))
    return None


def _ambiguous(written: islpy.Map, owners: islpy.Map) -> Iterator[int]:
    """Elements with two owners: those of a unit that another, later one writes too."""
    found = isl.sample(_pairs(written, owners))
    if found is not None:
        first, second = (isl.read_set(f"{{ [{p}] }}") for p in found)
        both = written.intersect_domain(first).range().intersect(written.intersect_domain(second).range())
        yield isl.minimum(both)


def _pairs(written: islpy.Map, owners: islpy.Map) -> islpy.Set:
    """``{ [[p] -> [q]] : p < q }`` of units that write one element."""
    pairs = written.apply_range(owners)  # unit -> units that write an element of it
    later = isl.read_map("{ [p] -> [q] : p < q }")
    return pairs.intersect(later).wrap()


def marks(region: Region, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Chunks of (address, int32 unit) of a region's points inside ``size`` elements, units ascending."""
    per_env = region.rows.extent * region.cols.extent
    for env in region.grids(_with_pid(region), max(CHUNK // per_env, 1)):
        place, valid = region.places(env)
        valid = valid & (place >= 0) & (place < size)  # what lies outside is the bounds rule's
        unit = np.broadcast_to(env[PID][:, None, None], valid.shape)[valid].astype(np.int32)
        yield place[valid], unit


def _by_marking(regions: Sequence[Region], size: int, complete: bool) -> Finding | None:
    owner = np.full(size, -1, dtype=np.int32)
    for region in regions:
        for address, unit in marks(region, size):
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


def _error(
    pointer: IPointer, writes: Sequence[Access], answer: Decision[Finding], launch: SizedLaunch
) -> VerifyError:
    name, size, finding = str(pointer.name), pointer.elements, answer.found
    if finding is None:
        return VerifyError(
            f"It is not proved that every element of '{name}' is written, and by one unit.",
            rule="coverage",
            pointer=name,
            where="; ".join(where(a.iop, a.slice) for a in writes[:3]),
            need="an exact answer" + for_all(launch),
            limit=budget(launch),
            remedy="write the offsets as sums of pid and loop variables with constant coefficients",
        )
    if isinstance(finding, Gap):
        if not writes:
            return VerifyError(
                f"Nothing writes the output '{name}'.",
                rule="coverage",
                pointer=name,
                where=f"'{name}' of {size} elements",
                witness=dict(answer.sizes),
                remedy=f"end the graph with a move into '{name}', or give it the role in or tmp",
            )
        return VerifyError(
            f"No unit writes element {finding.element} of the output '{name}'.",
            rule="coverage",
            pointer=name,
            where="; ".join(where(a.iop, a.slice) for a in writes[:3]),
            witness={**answer.sizes, "element": finding.element},
            need=f"all {size} elements written",
            remedy="widen the slices, their valid rows and cols or the loop extents so that they reach this "
            "element, or make the parameter inout if it is to keep its old values",
        )
    both = [a for a in writes if _touches(a.region.at(answer.sizes), finding.element)]
    return VerifyError(
        f"Units {finding.first} and {finding.second} both write element {finding.element} of '{name}'.",
        rule="coverage",
        pointer=name,
        where="; ".join(where(a.iop, a.slice) for a in both[:2]) or print_iop(writes[0].iop),
        witness={
            **answer.sizes,
            "element": finding.element,
            "pid": finding.first,
            "other_pid": finding.second,
        },
        need="one writing unit per element",
        remedy="make the offset advance with pid by what one unit writes, or end each unit's valid rows "
        "and cols where the next unit begins",
    )


def _touches(region: Region, element: int) -> bool:
    try:
        found = isl.points(region, region.used, f"a = {element}")
        return isl.bounded(lambda: not found.is_empty())
    except isl.Exhausted:
        return True
