# SPDX-License-Identifier: Apache-2.0
"""Sums of fewer rows than there are units: all units add up parts of rows, then the parts are added up.

Before::

    for i in M:  for k in N:  S[i] += X[i, k]

After, with p parts for each row::

    for q, i in grid(p, M):  for k in N / p:  P[q, i] += X[i, q * (N / p) + k]      # all units
    for i in M:  for q in p:  S[i] += P[q, i]                                       # after all of these
"""

from __future__ import annotations

import math

import attrs
from tvm import tirx
from tvm.s_tir import Schedule
from uir_tvm.bound_kernel import symbols_in
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import loop_extent, prim_func, reduction_blocks, reduction_loops
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.prepare import inline_producers
from uir_tvm.schedule.tile_facts import busy_units, space_of
from uir_tvm.schedules import phases
from uir_tvm.schedules.normalization.rowwise import schedule_rows

#: The recipe of rows that are reduced.
HERO = "reduction"
#: Parts for every unit at most, and what part of all units' time must be work.
MOST_PARTS, LEAST_AT_WORK = 8, 0.85


def parts_of(sch: Schedule, hw: HardwareModel) -> int:
    """Parts of each row that pay: of one length, the fewest that keep all units busy; 1: rows are whole."""
    least, reductions = space_of(hw).least_part, reduction_blocks(sch)
    if not least or len(reductions) != 1 or symbols_in(prim_func(sch)):
        return 1
    (block,) = reductions
    store = block.stmt.body
    if not isinstance(store, tirx.BufferStore) or not isinstance(store.value, tirx.Add):
        return 1
    units, rows, extent = busy_units(hw), math.prod(block.spatial), block.reduction[0]
    wanted = units // rows
    if wanted < 2 or math.prod(block.reduction) < wanted * least:
        return 1

    def is_even(parts: int) -> bool:
        return math.ceil(rows * parts / units) * units * LEAST_AT_WORK <= rows * parts

    numbers = range(wanted, MOST_PARTS * wanted + 1)
    return next((n for n in numbers if extent % n == 0 and is_even(n)), 1)


def schedule_parts(sch: Schedule, hw: HardwareModel, parts: int, decisions: Decisions = OWN) -> Schedule:
    """The function in two phases (see the module's text)."""
    from uir_tvm.schedules import RECIPES

    inline_producers(sch)
    (block,) = reduction_blocks(sch)
    loop = reduction_loops(sch, block.rv)[0]
    outer, _ = sch.split(loop, [parts, loop_extent(sch, loop) // parts])
    name = str(sch.get(sch.rfactor(outer, 0)).name_hint)

    def is_of_parts(part: Schedule) -> bool:
        return [block.name for block in reduction_blocks(part)] == [name]

    # of a row that is all of its tensor nothing shows that it has parts, which are rows
    first = attrs.evolve(
        next(r for r in RECIPES if r.hero == HERO), matches=is_of_parts, schedule=schedule_rows
    )
    own = [recipe for recipe in RECIPES if not recipe.last_resort and not recipe.stopgap]
    return phases.schedule_phases(sch, hw, [first, *own], decisions)
