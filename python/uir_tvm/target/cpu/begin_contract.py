# SPDX-License-Identifier: Apache-2.0
"""Contractions begin by themselves with what their sums begin with.

    fill s [0];  contract s, a, b [accumulate]          ->  contract s, a, b
    binary.mul o, o, f;  contract o, a, b [accumulate]  ->  contract o, a, b, f [accumulate]

A block of sums is in registers while it is computed: zeros are made there, and sums that a factor scales are
loaded there anyway.  By itself either is a pass over the target in memory.  Only where both iOps stand in one
body, write the same elements, and nothing between them touches these, or writes the factor.

A third source is known to `emit_contract` alone: this is the last that happens to a graph before its plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...igraph.iops import spec_of
from ...igraph.nodes import IOp, ISlice, Loop, walk_body
from .emit_dot import suits


def begun(body: Sequence[Any]) -> list[Any]:
    """A body whose contractions begin by themselves."""
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            out.append(Loop(node.var, node.extent, begun(node.body), node.attrs))
            continue
        at = _beginning(out, node)
        together = None if at is None else _together(out[at], node, out[at + 1 :])
        if at is not None and together is not None:
            del out[at]
        out.append(together or node)
    return out


def _beginning(before: Sequence[Any], iop: IOp) -> int | None:
    """The position of the last node that names what a contraction adds to; None where it adds to nothing."""
    if iop.op != "contract" or not iop.attrs.get("accumulate"):
        return None
    name = str(iop.target.pointer.name)
    if any(str(source.pointer.name) == name for source in iop.sources):
        return None
    found = (k for k in reversed(range(len(before))) if name in _names(before[k : k + 1]))
    return next(found, None)


def _together(first: Any, iop: IOp, between: Sequence[Any]) -> IOp | None:
    """The contraction that begins as ``first`` says; None where that is something else."""
    if isinstance(first, Loop) or first.target != iop.target:
        return None
    if spec_of(first).constant and _is_zero(first.attrs["value"]):
        attrs = {key: value for key, value in iop.attrs.items() if key != "accumulate"}
        return IOp(iop.op, iop.name, iop.dtype, iop.targets, iop.sources, attrs)
    factor = _factor(first)
    if factor is None or str(factor.pointer.name) in _names(between, written=True):
        return None
    # what is rounded between the two would have to be rounded in the contraction
    wide = {str(iop.dtype), str(iop.target.pointer.dtype), str(factor.pointer.dtype)} == {"fp32"}
    if not wide or suits(iop, *iop.sources):
        return None
    return IOp(iop.op, iop.name, iop.dtype, iop.targets, [*iop.sources, factor], iop.attrs)


def _factor(iop: IOp) -> ISlice | None:
    """What an iOp multiplies its target by."""
    if (iop.op, iop.name) != ("binary", "mul"):
        return None
    for own, other in (tuple(iop.sources), tuple(iop.sources)[::-1]):
        if own == iop.target and other.pointer.name != own.pointer.name and other.shape == own.shape:
            return other
    return None


def _is_zero(value: Any) -> bool:
    return float(value) == 0 and math.copysign(1, float(value)) > 0


def _names(nodes: Sequence[Any], *, written: bool = False) -> set[str]:
    """Pointers that nodes name, or that they write."""
    iops = (iop for iop, _ in walk_body(nodes))
    return {str(piece.pointer.name) for iop in iops for piece in (iop.targets if written else iop.slices())}
