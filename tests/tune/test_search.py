# SPDX-License-Identifier: Apache-2.0
"""The search proposes what is new and right, the same for an equal seed, and finds what is fast."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from tvm import tirx
from tvm.s_tir import Schedule
from tvm_ffi.structural import structural_hash
from uir_tvm.errors import VerifyError
from uir_tvm.tune.candidates import Checker, DesignPoint
from uir_tvm.tune.job import WRONG, Result
from uir_tvm.tune.search import TaskSearch
from uir_tvm.tune.sources import combination, size_of
from uir_tvm.tune.spaces import DesignSpace, design_spaces

from . import synthetic
from .synthetic import Vague, cost, decided, space, task, told, without_graphs

#: Trials that a search of a large space gets.
TRIALS = 64


def searched(search: TaskSearch, trials: int, batch: int = 8) -> list[DesignPoint]:
    """All that is proposed, each told its cost."""
    proposed: list[DesignPoint] = []
    while len(proposed) < trials and (new := search.propose(batch)):
        search.tell(new, told(new))
        proposed += new
    return proposed


def fastest(candidates: Sequence[DesignPoint]) -> float:
    return min(cost(c.graph) for c in candidates)  # type: ignore[arg-type]


def odd(func: tirx.PrimFunc) -> None:
    """Refuses what decides an odd first number."""
    if decided(func)["d0"] % 2:
        raise VerifyError("it is odd", rule="alignment")


class Blind:
    """A cost model that says the same of all."""

    def predict(self, graphs: Sequence[object]) -> list[float]:
        """See `uir_tvm.tune.search.Predictor`."""
        return [1.0] * len(graphs)


def test_a_real_kernel_is_searched_to_its_end_without_repeating() -> None:
    """Every combination is tried once; what is equal counts once; the compiler's own is among them."""
    subject = task()
    spaces = design_spaces(subject.func, subject.target)
    search = TaskSearch(subject, spaces, Blind(), 1)
    assert search.default is not None
    proposed: list[DesignPoint] = []
    while new := search.propose(16):
        proposed += new
        search.tell(new, [Result((1.0 + len(proposed),)) for _ in new])
    digests = [candidate.digest for candidate in proposed]
    assert len(set(digests)) == len(digests) and search.default.digest in digests
    assert 1 < len(digests) <= sum(map(size_of, search.spaces))
    assert search.exhausted and search.propose(4) == []
    checker = Checker(subject)
    every = {
        structural_hash(made.graph)
        for one in spaces
        for index in range(size_of(one))
        if (made := checker.candidate(one, combination(one.schedule.trace, index))) is not None
    }
    # of functions with equal iGraphs, the first one met is proposed
    assert {structural_hash(candidate.graph) for candidate in proposed} == every


@pytest.mark.parametrize("enumerated", [10**6, 0])
def test_equal_seeds_propose_equally(monkeypatch: pytest.MonkeyPatch, enumerated: int) -> None:
    without_graphs(monkeypatch)

    def proposals(seed: int) -> list[str]:
        search = TaskSearch(task(), [space(3)], Vague(), seed, enumerated=enumerated)
        return [c.digest for c in searched(search, 16)]

    assert proposals(5) == proposals(5)
    assert proposals(5) != proposals(6)


@pytest.mark.parametrize("enumerated", [10**6, 0])
def test_what_is_refused_is_never_proposed(monkeypatch: pytest.MonkeyPatch, enumerated: int) -> None:
    without_graphs(monkeypatch, odd)
    search = TaskSearch(task(), [space(2, tile=False)], Blind(), enumerated=enumerated)
    proposed = searched(search, 100)
    assert proposed and all(candidate.decisions["d0"] % 2 == 0 for candidate in proposed)
    assert len({c.digest for c in proposed}) == len(proposed) <= 32
    assert set(search.refused) == {"alignment"} and search.exhausted


@pytest.mark.parametrize("enumerated", [10**6, 0])
def test_decisions_that_an_instruction_refuses_are_passed_over(
    monkeypatch: pytest.MonkeyPatch, enumerated: int
) -> None:
    """A loop of 24 in so many parts of 4: less than 6 do not cover it, and TVM says so."""
    without_graphs(monkeypatch)
    begun = synthetic.kernel()
    sch = Schedule(begun, debug_mask="none")
    loop, _ = sch.get_loops(sch.get_child_blocks(sch.get_sblock("root"))[0])
    parts = sch.sample_categorical([2, 4, 6, 8, 12], [0.2] * 5, decision=2)
    sch.split(loop, [parts, 4])
    here = DesignSpace("parts", {}, begun, sch, ("parts",))
    search = TaskSearch(task(), [here], Blind(), enumerated=enumerated)
    assert sorted(c.decisions["parts"] for c in searched(search, 16)) == [6, 8, 12]
    assert search.exhausted


@pytest.mark.parametrize("enumerated", [10**6, 0])
def test_spaces_of_refused_schedules_end_quietly(monkeypatch: pytest.MonkeyPatch, enumerated: int) -> None:
    def never(func: tirx.PrimFunc) -> None:
        raise VerifyError("no", rule="capacity")

    without_graphs(monkeypatch, never)
    search = TaskSearch(task(), [space(2, tile=False)], Blind(), enumerated=enumerated)
    assert search.propose(8) == [] and search.exhausted and search.default is None
    assert search.refused["capacity"] > 1 and search.best is None


def test_no_spaces_are_exhausted() -> None:
    search = TaskSearch(task(), [], Blind())
    assert search.propose(3) == [] and search.default is None


def test_evolution_beats_chance_on_a_large_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 000 combinations, 64 trials, and a cost model that is off by a factor of e^0.5, up or down."""
    without_graphs(monkeypatch)
    here = space()
    assert size_of(here) == 8**5 * 6
    best = fastest(searched(TaskSearch(task(), [here], Vague(), 0), TRIALS))
    rng = random.Random(0)
    checker = Checker(task())
    drawn = [rng.randrange(size_of(here)) for _ in range(TRIALS)]
    made = [checker.candidate(here, combination(here.schedule.trace, index)) for index in drawn]
    by_chance = fastest([candidate for candidate in made if candidate is not None])
    assert best < 0.75 * by_chance and best <= 1.5


def test_a_small_space_is_searched_to_its_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    """512 combinations whose times are a table: within 5 % of the fastest after 64 trials."""
    without_graphs(monkeypatch)
    here = space(3, tile=False)
    assert size_of(here) == 512
    found = [fastest(searched(TaskSearch(task(), [here], Vague(), seed), TRIALS)) for seed in range(3)]
    assert sorted(found)[1] <= 1.05


def test_neighbours_of_the_fastest_are_tried_whatever_the_cost_model_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a model that has all the wrong way round, measured times lead to the optimum in most searches."""

    class Wrong:
        def predict(self, graphs: Sequence[Any]) -> list[float]:
            return [1 / cost(graph) for graph in graphs]

    without_graphs(monkeypatch)
    here = [space(3, tile=False)]
    found = [fastest(searched(TaskSearch(task(), here, Wrong(), seed), 128)) for seed in range(5)]
    assert sorted(found)[2] <= 1.25


def test_every_space_has_a_first_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    without_graphs(monkeypatch)
    spaces = [space(count, recipe=f"of {count}", tile=False) for count in (1, 2, 3, 4)]
    search = TaskSearch(task(), spaces, Vague(), enumerated=512)
    proposed = searched(search, 16)
    assert {candidate.space.recipe for candidate in proposed} == {s.recipe for s in spaces}


def test_stock_tile_mutations_are_part_of_an_evolution(monkeypatch: pytest.MonkeyPatch) -> None:
    """A space of nothing but a tile has no numbers to change: all of its tiles are found."""
    without_graphs(monkeypatch)
    search = TaskSearch(task(), [space(0)], Blind(), enumerated=0)
    proposed = searched(search, 32)
    assert sorted(candidate.decisions["tile"] for candidate in proposed) == [1, 2, 3, 4, 6, 8]


def test_what_was_told_is_not_proposed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's own, which others measure, and what an earlier search measured."""
    without_graphs(monkeypatch)

    def fresh(seed: int) -> TaskSearch:
        return TaskSearch(task(), [space(2, tile=False)], Vague(), seed)

    first = fresh(1)
    earlier = searched(first, 16)
    kept = [json.loads(json.dumps(candidate.to_json())) for candidate in earlier]
    second = fresh(2)
    assert second.default is not None
    restored = [candidate for data in kept if (candidate := second.restore(data)) is not None]
    assert [candidate.digest for candidate in restored] == [candidate.digest for candidate in earlier]
    second.tell([second.default, *restored], told([second.default, *restored]))
    assert first.best is not None and second.best is not None
    assert second.best.seconds <= first.best.seconds
    seen = {second.default.digest, *(c.digest for c in restored)}
    rest = searched(second, 64)
    assert not seen & {c.digest for c in rest}
    assert len(seen) + len(rest) == 64  # all of the space


def test_digests_that_are_skipped_are_not_proposed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_graphs(monkeypatch)
    every = searched(TaskSearch(task(), [space(1, tile=False)], Blind()), 8)
    search = TaskSearch(task(), [space(1, tile=False)], Blind())
    search.skip(candidate.digest for candidate in every[:5])
    assert {c.digest for c in searched(search, 8)} == {c.digest for c in every[5:]}


def test_failed_candidates_are_not_the_best_and_not_proposed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    without_graphs(monkeypatch)
    search = TaskSearch(task(), [space(1, tile=False)], Blind())
    first = search.propose(4)
    search.tell(first, [Result((), WRONG)] * 3 + [Result((2.0,))])
    assert search.best is not None and search.best.candidate is first[3] and search.best.seconds == 2.0
    assert not {c.digest for c in first} & {c.digest for c in search.propose(8)}


def test_proposals_say_what_the_cost_model_expects(monkeypatch: pytest.MonkeyPatch) -> None:
    without_graphs(monkeypatch)
    model = Vague()
    proposed = TaskSearch(task(), [space(2, tile=False)], model).propose(8)
    assert [c.predicted for c in proposed] == model.predict([c.graph for c in proposed])
