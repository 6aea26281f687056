# SPDX-License-Identifier: Apache-2.0
"""Validity: every source is valid wherever its iOp reads it.

An iOp reads the part of a source that the valid box of another operand decides (see
the column ``reads`` of the iOp table); the source's own box must hold all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs
import islpy

from ..errors import VerifyError
from ..igraph.affine import Affine, affine
from ..igraph.iops import mnemonic
from ..igraph.text import print_slice
from . import isl
from .access import GraphFacts, Step
from .decide import CHUNK, Decision, Rung, decide
from .describe import range_text, where, witness_of
from .region import Axis, Region
from .sized_launch import SizedLaunch


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every source that is read outside its valid box."""
    for step in facts.steps:
        if not step.spec.touches or "valid" in step.memo:
            continue
        faults = list(_step_faults(step))
        yield from faults
        if not faults:
            step.memo["valid"] = True


def _step_faults(step: Step) -> Iterator[VerifyError]:
    if not any(region.bounds for operand, _, region in step.operands if operand != "target"):
        return
    boxes = {operand: (piece, region) for operand, piece, region in step.operands}
    for k, rule in enumerate(step.spec.reads(step.iop)):
        piece, region = boxes[f"source{k}"]
        for word, origin in (("rows", rule.rows), ("cols", rule.cols)):
            if origin is None or not rule.required:
                continue
            axis: Axis = getattr(region, word)
            if not (axis.lower or axis.upper):
                continue
            reader_piece, reader = boxes[origin[0]]
            answer = _fault(step, axis, reader, origin[1])
            if not answer.excluded:
                name, reads = piece.pointer.name, f"{mnemonic(step.iop)} reads"
                wanted = range_text(getattr(reader, origin[1]))
                yield VerifyError(
                    f"{reads} '{name}' outside its valid {word}."
                    if answer.decided
                    else f"It is not proved that {reads} only valid {word} of '{name}'.",
                    rule="bounds",
                    pointer=str(name),
                    where=where(step.iop, piece),
                    witness={**answer.sizes, **(answer.found or {})},
                    need=f"{word} {wanted}, as in {print_slice(reader_piece)}",
                    limit=f"{word} {range_text(axis)} of {print_slice(piece)}",
                    remedy=f"give '{piece.pointer.name}' the {word} that are read, or bound "
                    f"'{reader_piece.pointer.name}' by what is valid (a move may pad instead)",
                )


def _fault(step: Step, axis: Axis, reader: Region, reader_axis: str) -> Decision[dict[str, int]]:
    """A point whose position the reader's box has and ``axis`` has not."""
    theirs: Axis = getattr(reader, reader_axis)
    last: Decision[dict[str, int]] = Decision(None, Rung.INTERVALS)
    for bounds, upper in ((axis.upper, True), (axis.lower, False)):
        for bound in bounds:
            answer = decide(_Outside(bound, upper, reader, reader_axis, theirs, step))
            if answer.found is not None:
                return answer
            last = answer if last.decided else last
    return last


@attrs.frozen(eq=False)
class _Outside:
    """Does the reader's box have a position beyond a bound?"""

    bound: Affine
    upper: bool
    reader: Region
    reader_axis: str
    theirs: Axis
    step: Step

    @property
    def variables(self) -> list[str]:
        """What the question depends on."""
        used = {*self.reader.used, *self.bound.variables()}
        return [v for v in self.step.extents if v in used]

    @property
    def launch(self) -> SizedLaunch:
        return self.reader.launch

    @property
    def num_points(self) -> int:
        return self.reader.num_envs(self.variables)

    def excluded(self) -> bool:
        reach = self.reader.range
        if self.upper:
            known = (affine(self.theirs.extent), *self.theirs.upper)
            return any(reach(self.bound - b)[0] >= 0 for b in known)
        known = (affine(0), *self.theirs.lower)
        return any(reach(self.bound - b)[1] <= 0 for b in known)

    def counterexamples(self) -> list[Callable[[], islpy.Set]]:
        return [self.all_of_them]

    def all_of_them(self) -> islpy.Set:
        names = isl.IslNames(self.reader)
        position = names.row if self.reader_axis == "rows" else names.col
        condition = f"{position} {'>=' if self.upper else '<'} {names.text(self.bound)}"
        return isl.points(self.reader, self.variables, condition)

    def at(self, sizes: Mapping[str, int]) -> _Outside:
        reader = self.reader.at(sizes)
        theirs: Axis = getattr(reader, self.reader_axis)
        return attrs.evolve(self, bound=self.bound.substitute(sizes), reader=reader, theirs=theirs)

    def by_isl(self) -> dict[str, int] | None:
        point = isl.sample(self.all_of_them())
        if point is None:
            return None
        names_of = [*self.variables, "row", "col"]
        return witness_of(self.reader, dict(zip(names_of, point[1:], strict=True)))

    def by_points(self, few: bool) -> dict[str, int] | None:
        by_rows = self.reader_axis == "rows"
        for env in self.reader.grids(self.variables, CHUNK):
            r0, r1, c0, c1 = self.reader.box(env)
            first, last = (r0, r1 - 1) if by_rows else (c0, c1 - 1)
            limit = self.bound.values(env)
            bad = (r1 > r0) & (c1 > c0) & ((last >= limit) if self.upper else (first < limit))
            if bad.any():
                at = int(bad.argmax())
                values = {v: int(env[v][at]) for v in self.variables}
                end = int(last[at] if self.upper else first[at])
                place = {"row": int(r0[at]), "col": int(c0[at]), "row" if by_rows else "col": end}
                return witness_of(self.reader, values | place)
        return None
