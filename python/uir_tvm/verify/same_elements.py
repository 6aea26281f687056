# SPDX-License-Identifier: Apache-2.0
"""Identity: both sides of an identity are the same elements, for every pid and iteration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import islpy

from ..errors import VerifyError
from ..igraph.iops import IOPS
from ..igraph.text import print_iop
from . import isl
from .access import GraphFacts, Step
from .region import Region
from .sized_launch import SizedLaunch


def check(facts: GraphFacts) -> Iterator[VerifyError]:
    """Every identity whose sides differ."""
    for step in facts.steps:
        if step.spec.renames:
            yield from _step_faults(step)


def _step_faults(step: Step) -> Iterator[VerifyError]:
    targets = [region for operand, _, region in step.operands if operand == "target"]
    sources = [region for operand, _, region in step.operands if operand != "target"]
    if {r.key for r in targets} == {r.key for r in sources}:
        return
    variables = list(step.extents)
    witness: dict[str, int] = {}
    try:
        found = isl.bounded(lambda: _difference(targets, sources, variables, step.launch))
        if found is None:
            return
        sizes, point = found
        witness = {**sizes, **dict(zip([*variables, *_names(targets[0])], point, strict=True))}
        what = "The two sides of an identity are not the same elements."
    except isl.Exhausted:
        what = "It is not proved that the two sides of an identity are the same elements."
    yield VerifyError(
        what,
        rule="identity",
        where=print_iop(step.iop),
        witness=witness,
        need=IOPS["identity"].summary,
        remedy="use a move where elements go from one place to another",
    )


def _names(region: Region) -> list[str]:
    """What a witness calls an element: its indices where strides are sizes."""
    return [f"index{k}" for k in range(len(region.dims))] or ["element"]


def _difference(
    a: Sequence[Region], b: Sequence[Region], variables: Sequence[str], launch: SizedLaunch
) -> tuple[dict[str, int], list[int]] | None:
    """Sizes and a point of { [variables...] -> [address] } that is on one side alone; None when there
    is none.
    """

    def side(regions: Sequence[Region]) -> islpy.Map:
        return reduce(islpy.Map.union, [isl.relation(r, variables) for r in regions])

    left, right = side(a), side(b)
    found = left.subtract(right).union(right.subtract(left)).wrap()
    if found.is_empty():
        return None
    sizes = isl.least_sizes(found, launch)
    point = isl.sample(isl.at_sizes(found, sizes))
    assert point is not None
    return sizes, point
