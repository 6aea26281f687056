# SPDX-License-Identifier: Apache-2.0
"""Combinations of decisions are counted and made; which are enumerated, and what evolutions are told."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from tvm.s_tir import Schedule, meta_schedule
from uir_tvm.tune.candidates import Checker
from uir_tvm.tune.mutator import decided, options
from uir_tvm.tune.search import TaskSearch
from uir_tvm.tune.sources import Evolved, Expected, combination, size_of

from . import synthetic
from .kernels import kernel
from .synthetic import Vague, space, task, without_graphs


def test_every_combination_is_made_once() -> None:
    here = space(1)
    trace = here.schedule.trace
    made = [combination(trace, index) for index in range(size_of(here))]
    decisions = {str([decided(i, t) for i in t.insts if options(i, t)]) for t in made}
    assert size_of(here) == len(decisions) == synthetic.OPTIONS * 6


def test_small_spaces_are_enumerated_and_large_ones_of_one_beginning_evolve_together() -> None:
    other = attrs.evolve(space(4), begun=kernel(True))
    spaces = [space(1), space(4), space(5), other]
    search = TaskSearch(task(), spaces, Vague(), 0, enumerated=100)
    assert sorted(at for _, at in search._combinations) == list(range(size_of(spaces[0])))
    assert all(small is spaces[0] for small, _ in search._combinations)
    assert [evolved.spaces for evolved in search._evolved] == [tuple(spaces[1:3]), (other,)]


def test_an_enumeration_gives_all_in_another_order_for_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    without_graphs(monkeypatch)

    def given(seed: int) -> list[str]:
        search = TaskSearch(task(), [space(2, tile=False)], Vague(), seed)
        found = []
        while not search.exhausted:
            found += search.propose(10)
        assert search.propose(1) == []
        return [candidate.digest for candidate in found]

    assert given(1) == given(1) != given(2)
    assert sorted(given(1)) == sorted(given(2)) and len(set(given(1))) == synthetic.OPTIONS**2


def test_an_evolution_begins_from_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told of the optimum, one evolution among 200 000 combinations comes nearer to it than without."""
    without_graphs(monkeypatch)
    here = space()

    def near(known: bool) -> float:
        checker = Checker(task())
        source = Evolved([here], checker, lambda graphs: [1.0] * len(graphs), 3)
        if known:
            index = sum(at * 8**n for n, at in enumerate(synthetic.OPTIMUM))
            best = checker.candidate(here, combination(here.schedule.trace, index))
            assert best is not None and synthetic.cost(best.graph) == 1.0  # type: ignore[arg-type]
            for _ in range(8):
                source.tell(best, 1.0)
        # the optimum itself is known and not given again
        return min(synthetic.cost(c.graph) for c in source.more())  # type: ignore[arg-type]

    assert 1.0 < near(True) < 0.7 * near(False)


def test_scores_of_an_evolution_compare_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 for the fastest of the first call, a quarter for what takes twice as long, in every call."""
    without_graphs(monkeypatch)
    checker = Checker(task())
    here = space(1, tile=False)
    candidates: list[Any] = []
    for index in range(3):
        sch = checker.replay(here, combination(here.schedule.trace, index))
        assert sch is not None
        candidates.append(meta_schedule.MeasureCandidate(sch, []))
    times = iter([[2.0, 4.0], [1.0]])
    model: Any = Expected(checker, lambda graphs: next(times))
    context = Evolved([here], checker, Vague().predict, 0).context
    assert list(model.predict(context, candidates[:2])) == [1.0, 0.25]
    assert list(model.predict(context, candidates[2:])) == [4.0]


def test_what_has_no_igraph_scores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uir_tvm.tune.candidates.extract", lambda func, hw, name: 1 / 0)
    checker = Checker(task())
    model: Any = Expected(checker, lambda graphs: [1.0] * len(graphs))
    candidate: Any = meta_schedule.MeasureCandidate(Schedule(kernel(), debug_mask="none"), [])
    context = Evolved([space(1)], checker, Vague().predict, 0).context
    assert list(model.predict(context, [candidate])) == [0.0]
