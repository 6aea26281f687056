# SPDX-License-Identifier: Apache-2.0
"""Iops without the bounds of their boxes that say nothing, for every pid, every iteration and all sizes."""

from __future__ import annotations

from collections.abc import Iterator

from ..igraph.affine import Affine
from ..igraph.nodes import IOp, ISlice
from .step_domain import StepDomain


def without_needless(iop: IOp, domain: StepDomain) -> IOp:
    """An iOp without the bounds that say nothing; itself where all matter.

    Parameters
    ----------
    domain : StepDomain
        Of the place where it stands.
    """
    pieces = list(iop.slices())
    kept = [_bounds(piece, domain) for piece in pieces]
    same = all(
        bounds.count(None) == list(piece.valid).count(None)
        for bounds, piece in zip(kept, pieces, strict=True)
    )
    return iop if same else _with_bounds(iop, iter(kept))


def _with_bounds(iop: IOp, bounds: Iterator[list[Affine | None]]) -> IOp:
    """The iOp with bounds in the order of `IOp.slices`: targets, sources, buffer."""

    def change(piece: ISlice) -> ISlice:
        r0, r1, c0, c1 = next(bounds)
        return piece.replace(rows=(r0, r1), cols=(c0, c1))

    targets = [change(s) for s in iop.targets]
    sources = [change(s) for s in iop.sources]
    attributes = {k: change(v) if isinstance(v, ISlice) else v for k, v in iop.attrs.items()}
    return IOp(iop.op, iop.name, iop.dtype, targets, sources, attributes)


def _bounds(piece: ISlice, domain: StepDomain) -> list[Affine | None]:
    """The bounds of a slice that matter, None for the others."""
    return [
        None
        if bound is None or _says_nothing(bound, k % 2 == 1, piece.rows if k < 2 else piece.cols, domain)
        else bound
        for k, bound in enumerate(piece.valid)
    ]


def _says_nothing(bound: Affine, is_end: bool, limit: int, domain: StepDomain) -> bool:
    def beyond(value: int) -> bool:
        return value >= limit if is_end else value <= 0

    low, high = domain.range(bound)
    if beyond(low if is_end else high):
        return True
    # a bound that matters mostly does so where all variables begin or end: the others need not be tried
    if bound.is_linear or not all(map(beyond, domain.at_ends(bound))):
        return False
    low, high = domain.extremes(bound)
    return beyond(low if is_end else high)
