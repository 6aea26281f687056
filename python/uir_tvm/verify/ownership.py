# SPDX-License-Identifier: Apache-2.0
"""Shared memory of which every element that is written has one unit that touches it: no question of order."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from ..igraph.affine import var
from ..igraph.nodes import IPointer
from . import coverage
from .access import GraphFacts
from .period import in_first_group
from .region import PID, Region

#: Points that are marked at most; beyond, pairs of accesses are looked at one by one.
FEW_POINTS = 1 << 20


def owned(facts: GraphFacts, pointer: IPointer) -> bool:
    """Whether surely no element that is written is touched by two units that share it."""
    graph = facts.graph
    accesses = facts.by_pointer[str(pointer.name)]
    if pointer.level == "reg" or int(graph.num_parallel) == 1:
        return True
    if pointer.level == "sram" and int(graph.num_units) == 1:
        return True
    writes = [a for a in accesses if a.kind == "write"]
    if not writes or (len(accesses) == 1 and not writes[0].certain):
        return True
    regions = [a.region for a in accesses]
    groups = int(graph.num_groups) if pointer.level == "sram" else 1
    if groups > 1:
        alike = in_first_group(regions, int(graph.num_units))
        if alike is not None:
            regions, groups = alike, 1
        else:  # the memories of the groups one after the other
            regions = [_placed(r, int(pointer.size), int(graph.num_units)) for r in regions]
    known = ("coverage", str(pointer.name))
    if len(writes) == len(accesses) and known in facts.memo and facts.memo[known].excluded:
        return True
    if not facts.launch.static:
        return False  # pairs of accesses are looked at one by one
    size = int(pointer.size) * groups
    if coverage.tiled(regions, size, complete=False):
        return True
    return _by_marks(regions, [a.kind == "write" for a in accesses], size)


def _placed(region: Region, size: int, num_units: int) -> Region:
    return attrs.evolve(region, offset=region.offset + (var(PID) // num_units) * size)


def _by_marks(regions: Sequence[Region], writing: Sequence[bool], size: int) -> bool:
    """The same, by the first and the last unit that touch each element; False where it is not known."""
    distinct: dict[tuple[object, ...], tuple[Region, bool]] = {}
    for region, writes in zip(regions, writing, strict=True):
        _, before = distinct.get(region.key, (region, False))
        distinct[region.key] = (region, before or writes)
    if coverage.num_points([r for r, _ in distinct.values()]) + size > FEW_POINTS:
        return False
    first = np.full(size, np.iinfo(np.int32).max, dtype=np.int32)
    last = np.full(size, -1, dtype=np.int32)
    written = np.zeros(size, dtype=np.bool_)
    for region, writes in distinct.values():
        for address, unit in coverage.marks(region, size):
            # of an index that occurs twice the last assignment stands: units ascend
            last[address] = np.maximum(last[address], unit)
            address, unit = address[::-1], unit[::-1]
            first[address] = np.minimum(first[address], unit)
            if writes:
                written[address] = True
    return not bool((written & (first < last)).any())
