# SPDX-License-Identifier: Apache-2.0
"""Mutations are other decisions of the same trace, mostly near ones, and the same for an equal seed."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from uir_tvm.tune.candidates import form_of
from uir_tvm.tune.mutator import NEAR, MutateDecision, decided, moved, mutated, neighbours, options

from .synthetic import NAMES, OPTIONS, module_of, space


def decisions(trace: Trace) -> list[object]:
    """Of all sampling instructions, in order."""
    return [decided(inst, trace) for inst in trace.insts if options(inst, trace)]


def test_a_mutation_changes_one_number_and_replays() -> None:
    here = space()
    trace = here.schedule.trace
    for seed in range(1, 20):
        other = mutated(trace, seed)
        assert other is not None
        changed = [a != b for a, b in zip(decisions(trace), decisions(other), strict=True)]
        assert sum(changed) == 1 and not changed[-1]  # tiles are left to the stock mutator
        assert form_of(other) == form_of(trace)
        sch = Schedule(module_of(here.begun), debug_mask="none")
        other.apply_to_schedule(sch, remove_postproc=True)
        assert here.decisions(sch) != here.decisions(here.schedule)


def test_metaschedule_calls_it_as_a_mutator() -> None:
    trace = space().schedule.trace
    mutator: Any = MutateDecision().clone()
    other = mutator.apply(trace)
    assert other is not None and decisions(other) != decisions(trace)


def test_equal_seeds_mutate_equally_and_others_differ() -> None:
    trace = space().schedule.trace
    made = [decisions(mutated(trace, 7)) for _ in range(3)]
    assert made[0] == made[1] == made[2]
    assert len({str(decisions(mutated(trace, seed))) for seed in range(1, 40)}) > len(NAMES)


def test_most_mutations_move_to_a_neighbour() -> None:
    rng = random.Random(0)
    steps = Counter(abs(moved(3, 8, rng) - 3) for _ in range(2000))
    # of those that go anywhere, 2 of 7 are neighbours; 3 standard deviations of 2000 draws are 2.6 %
    assert steps[1] / 2000 == pytest.approx(NEAR + (1 - NEAR) * 2 / 7, abs=0.03)
    assert set(steps) == {1, 2, 3, 4}


def test_ends_of_a_list_move_inwards() -> None:
    rng = random.Random(0)
    assert {moved(0, 2, rng) for _ in range(20)} == {1}
    assert min(moved(0, 5, rng) for _ in range(50)) > 0 and max(moved(4, 5, rng) for _ in range(50)) < 4


def test_a_trace_without_numbers_has_no_mutation() -> None:
    assert mutated(space(0).schedule.trace, 1) is None
    mutator: Any = MutateDecision()
    assert mutator.apply(space(0).schedule.trace) is None


def test_neighbours_are_one_step_away_in_one_decision() -> None:
    here = space()
    trace = here.schedule.trace
    # at the lower end of every list, and a tile of 1 of the divisors 1, 2, 3, 4, 6, 8 of 24
    found = [decisions(other) for other in neighbours(trace)]
    now = decisions(trace)
    assert len(found) == len(NAMES) + 1
    for number, other in enumerate(found):
        assert [a != b for a, b in zip(now, other, strict=True)].index(True) == number
    assert found[-1][-1] == [12, 2] and found[0][0] == 1
    inner = trace.with_decision(next(i for i in trace.insts if options(i, trace)), 3, remove_postproc=True)
    assert len(list(neighbours(inner))) == len(NAMES) + 2


def test_options_of_a_tile_divide_its_loop_up_to_the_limit() -> None:
    trace = space().schedule.trace
    *numbers, tile = [options(inst, trace) for inst in trace.insts if options(inst, trace)]
    assert [inner for _, inner in tile] == [1, 2, 3, 4, 6, 8]
    assert all(outer * inner == 24 for outer, inner in tile)
    assert all(answers == list(range(OPTIONS)) for answers in numbers)
