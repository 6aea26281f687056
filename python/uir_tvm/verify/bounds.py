# SPDX-License-Identifier: Apache-2.0
"""Bounds: every element that an iOp touches lies in its pointer.

The address of element (i, j) is checked over the whole domain of pid, loops, i and j, by the ladder of
`decide`: intervals of the corners of the box, the corners at every point, isl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs
import islpy
import numpy as np

from ..errors import VerifyError
from ..igraph.affine import Affine, affine
from ..igraph.iops import mnemonic
from ..igraph.nodes import IPointer, ISlice
from . import isl
from .access import GraphFacts, Step
from .decide import CHUNK, Decision, decide
from .describe import budget, for_all, where, witness_of
from .region import Region
from .sized_launch import SizedLaunch


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every slice that leaves its pointer."""
    proved: set[tuple[object, ...]] = set()
    for step in facts.steps:
        for operand, piece, region in touched(step):
            if "inside" in region.memo:
                continue  # in an earlier graph too: it is the same slice, of the same pointer
            if _in_shape(region, piece.pointer):
                region.memo["inside"] = True
                continue
            key = (str(piece.pointer.name), region.key)
            if key in proved:
                continue
            for part, limit, where_in in _parts(region, piece.pointer):
                answer = find_outside(part, limit)
                if not answer.excluded:
                    yield _outside_error(step, operand, part, limit, where_in, answer)
                    break
            else:
                proved.add(key)
                region.memo["inside"] = True


def _in_shape(region: Region, pointer: IPointer) -> bool:
    """Whether the whole shape lies within the pointer, whatever is valid of it; asked of numbers alone."""
    if not region.launch.static or region.dims:
        return False
    steps = [(axis.extent - 1) * axis.stride for axis in (region.rows, region.cols)]
    low, high = (region.offset.constant,) * 2 if region.offset.is_constant else region.range(region.offset)
    return low + sum(min(s, 0) for s in steps) >= 0 and high + sum(max(s, 0) for s in steps) < pointer.size


def touched(step: Step) -> Iterator[tuple[str, ISlice, Region]]:
    """(operand, slice, elements touched): of a source only what the target's box lets it read.

    A padded move, for one, reads where both its boxes overlap: a concatenation at a tail has one bound
    on the source and the other on the target.
    """
    if step.accesses:
        yield from ((a.operand, a.slice, a.region) for a in step.accesses)
    else:
        yield from step.operands


def _parts(region: Region, pointer: IPointer) -> Iterator[tuple[Region, Affine, str]]:
    """(indices, how many there are, of what) of each dimension where strides are sizes; else the addresses.

    Where the indices are not known the addresses are looked at, at some sizes.
    """
    if not region.dims or region.coordinates is None:
        yield region, pointer.elements, ""
        return
    for dim, limit in enumerate(region.dims):
        yield region.along(dim), limit, f"dimension {dim} of "


@attrs.frozen
class Outside:
    """A point of a region outside ``[0, size)``."""

    address: int
    witness: dict[str, int]


def find_outside(region: Region, size: Affine | int) -> Decision[Outside]:
    """The farthest address of ``region`` outside ``[0, size)``."""
    end = affine(size)
    return decide(_OutsideQuestion(region, end.constant if end.is_constant else end))


@attrs.frozen(eq=False)
class _OutsideQuestion:
    """Is there an element of the region outside ``[0, size)``?"""

    region: Region
    size: Affine | int

    @property
    def launch(self) -> SizedLaunch:
        return self.region.launch

    @property
    def num_points(self) -> int:
        return self.region.num_envs(self.region.used)

    def excluded(self) -> bool:
        reach, size = self.region.range, self.size
        corners = self.region.corners(True)
        if isinstance(size, int):
            below = any(reach(c)[1] < size for c in corners)
        else:
            below = any(reach(c - size)[1] < 0 for c in corners)
        return below and any(reach(c)[0] >= 0 for c in self.region.corners(False))

    def counterexamples(self) -> list[Callable[[], islpy.Set]]:
        return [self.all_of_them]

    def all_of_them(self) -> islpy.Set:
        end = affine(self.size)
        if not end.is_affine:
            raise isl.Exhausted(f"the number of elements is {end}")
        size = end.render(isl.size_names(self.launch), "isl")
        return isl.points(self.region, self.region.used, f"a < 0 or a >= {size}")

    def at(self, sizes: Mapping[str, int]) -> _OutsideQuestion:
        return _OutsideQuestion(self.region.at(sizes), affine(self.size).evaluate(sizes))

    def by_isl(self) -> Outside | None:
        region, size, variables = self.region, self._size, self.region.used
        found = isl.points(region, variables, f"a < 0 or a >= {size}")
        if found.is_empty():
            return None
        high = isl.maximum(found)
        address = high if high >= size else isl.minimum(found)
        point = isl.sample(isl.points(region, variables, f"a = {address}"))
        assert point is not None
        return Outside(
            address, witness_of(region, dict(zip([*variables, "row", "col"], point[1:], strict=True)))
        )

    @property
    def _size(self) -> int:
        assert isinstance(self.size, int), "asked where there are no sizes"
        return self.size

    def by_points(self, few: bool) -> Outside | None:
        region, size, farthest = self.region, self._size, None
        for env in region.grids(region.used, CHUNK):
            r0, r1, c0, c1 = region.box(env)
            base = region.offset.values(env)
            for high in (True, False):
                row = r1 - 1 if (region.rows.stride > 0) == high else r0
                col = c1 - 1 if (region.cols.stride > 0) == high else c0
                address = base + row * region.rows.stride + col * region.cols.stride
                address = np.where((r1 > r0) & (c1 > c0), address, 0)
                at = int(address.argmax() if high else address.argmin())
                reached = int(address[at])
                if 0 <= reached < size or (farthest and not _farther(reached, farthest.address)):
                    continue
                values = {v: int(env[v][at]) for v in region.used} | {
                    "row": int(row[at]),
                    "col": int(col[at]),
                }
                farthest = Outside(reached, witness_of(region, values))
        return farthest


def _farther(a: int, b: int) -> bool:
    """Beyond the end comes first, then before the start; of one side the farther."""
    return a > b if a >= 0 or b >= 0 else a < b


def _outside_error(
    step: Step, operand: str, region: Region, elements: Affine, where_in: str, answer: Decision[Outside]
) -> VerifyError:
    """The fault of a region that leaves its pointer of so many elements, or one of its dimensions."""
    outside = answer.found
    pieces = {name: piece for name, piece, _ in step.operands}
    piece = pieces[operand]
    name = piece.pointer.name
    verb = "writes" if operand == "target" else "reads" if operand.startswith("source") else "uses"
    verb = "names" if not step.spec.touches else verb
    if outside is None:
        return VerifyError(
            f"It is not proved that {mnemonic(step.iop)} stays inside {where_in}'{name}'.",
            rule="bounds",
            pointer=name,
            where=where(step.iop, piece),
            need=f"a proof over {region.num_envs(region.used)} combinations of pid and loops"
            + for_all(region.launch),
            limit=budget(region.launch),
            remedy="write the offset with fewer floor and mod terms, or bound the slice by rows and cols",
        )
    size = elements.evaluate(answer.sizes)
    beyond = outside.address >= size
    before = f"begin the valid rows at {_first_inside(region)}, or add {-outside.address} to the offset"
    return VerifyError(
        f"{mnemonic(step.iop)} {verb} {'beyond the end' if beyond else 'before the start'} of "
        f"{where_in}'{name}'.",
        rule="bounds",
        pointer=name,
        where=where(step.iop, piece),
        witness={**answer.sizes, **outside.witness},
        need=f"{'index' if where_in else 'address'} {outside.address}",
        limit=f"size {elements}{'' if where_in else ' elements'}",
        remedy=_remedy(region, elements, outside.address - size + 1) if beyond else before,
    )


def _remedy(region: Region, size: Affine, excess: int) -> str:
    """Smaller coefficients that stay inside, and the valid rows or columns that do."""
    smaller = []
    for v in region.used if region.launch.static else ():
        c, steps = region.offset.coefficient(v), region.extents[v] - 1
        if c > 0 and steps > 0:
            fits = c + (-excess // steps)
            if 2 * fits >= c:  # a slip of the pen; a smaller one is hardly what was meant
                smaller.append(f"{fits}*{v} instead of {c}*{v}")
    hints = [f"an offset with {' or '.join(smaller)} stays inside"] if smaller else []
    axis, other, word = region.rows, region.cols, "rows"
    if axis.extent == 1 or axis.stride <= 0:
        axis, other, word = region.cols, region.rows, "cols"
    if axis.stride > 0:
        reach = max((other.extent - 1) * other.stride, 0)
        end = (size - reach + axis.stride - 1 - region.offset) // axis.stride
        hints.append(f"bound the slice by its valid {word} :{end}")
    return "; or ".join(hints) or f"make the pointer {excess} elements larger"


def _first_inside(region: Region) -> Affine:
    return (affine(region.rows.stride - 1) - region.offset) // max(region.rows.stride, 1)
