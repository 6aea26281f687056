# SPDX-License-Identifier: Apache-2.0
"""Validity: every source is valid wherever its iOp reads it.

An iOp reads the part of a source that the valid box of another operand decides (see
the column ``reads`` of the iOp table); the source's own box must hold all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import VerifyError
from ..igraph.affine import Affine, affine
from ..igraph.iops import mnemonic
from ..igraph.text import print_slice
from . import isl
from .access import Program, Step
from .bounds import CHUNK, FEW_POINTS, MAX_POINTS
from .describe import range_text, where, witness_of
from .expr import Expr, expr
from .region import Axis, Region


def check(program: Program) -> Iterator[VerifyError]:
    """Every source that is read outside its valid box."""
    for step in program.steps:
        if step.spec.touches:
            yield from _step_faults(step)


def _step_faults(step: Step) -> Iterator[VerifyError]:
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
            wanted = range_text(getattr(reader, origin[1]))
            witness = _fault(step, axis, reader, origin[1])
            if witness is not None:
                name, reads = piece.pointer.name, f"{mnemonic(step.iop)} reads"
                yield VerifyError(
                    f"{reads} '{name}' outside its valid {word}."
                    if witness
                    else f"It is not proved that {reads} only valid {word} of '{name}'.",
                    rule="bounds",
                    where=where(step.iop, piece),
                    witness=witness,
                    need=f"{word} {wanted}, as in {print_slice(reader_piece)}",
                    limit=f"{word} {range_text(axis)} of {print_slice(piece)}",
                    remedy=f"give '{piece.pointer.name}' the {word} that are read, or bound "
                    f"'{reader_piece.pointer.name}' by what is valid (a move may pad instead)",
                )


def _fault(step: Step, axis: Axis, reader: Region, reader_axis: str) -> dict[str, int] | None:
    """A point whose position the reader's box has and ``axis`` has not.

    None when there is none, empty when it is not known whether there is.
    """
    theirs: Axis = getattr(reader, reader_axis)
    for bounds, upper in ((axis.upper, True), (axis.lower, False)):
        for bound in bounds:
            if not _implied(bound, theirs, upper, step):
                found = _violation(step, expr(bound), upper, reader, reader_axis)
                if found is not None:
                    return found
    return None


def _implied(bound: Affine, theirs: Axis, upper: bool, step: Step) -> bool:
    """Whether intervals show that every position of ``theirs`` respects ``bound``."""
    if upper:
        known = (affine(theirs.extent), *theirs.upper)
        return any(expr(bound - b).interval(step.extents)[0] >= 0 for b in known)
    known = (affine(0), *theirs.lower)
    return any(expr(bound - b).interval(step.extents)[1] <= 0 for b in known)


def _violation(
    step: Step, bound: Expr, upper: bool, reader: Region, reader_axis: str
) -> dict[str, int] | None:
    variables = [v for v in step.extents if v in reader.used or v in bound.variables]
    names = isl.Names(reader)
    position = names.row if reader_axis == "rows" else names.col
    if reader.num_envs(variables) <= FEW_POINTS:
        return _by_enumeration(bound, upper, reader, reader_axis, variables)
    condition = f"{position} {'>=' if upper else '<'} {bound.isl_text(names.of)}"
    try:
        point = isl.bounded(lambda: isl.sample(isl.points(reader, variables, condition)))
    except isl.Exhausted:
        return _by_enumeration(bound, upper, reader, reader_axis, variables)
    if point is None:
        return None
    return witness_of(reader, dict(zip([*variables, "row", "col"], point[1:], strict=True)))


def _by_enumeration(
    bound: Expr, upper: bool, reader: Region, reader_axis: str, variables: Sequence[str]
) -> dict[str, int] | None:
    if reader.num_envs(variables) > MAX_POINTS:
        return {}
    for env in reader.grids(variables, CHUNK):
        r0, r1, c0, c1 = reader.box(env)
        first, last = (r0, r1 - 1) if reader_axis == "rows" else (c0, c1 - 1)
        limit = bound.values(env)
        bad = (r1 > r0) & (c1 > c0) & ((last >= limit) if upper else (first < limit))
        if bad.any():
            at = int(bad.argmax())
            values = {v: int(env[v][at]) for v in variables}
            end = int(last[at] if upper else first[at])
            place = {"row": int(r0[at]), "col": int(c0[at]), "row" if reader_axis == "rows" else "col": end}
            return witness_of(reader, values | place)
    return None
