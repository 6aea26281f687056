# SPDX-License-Identifier: Apache-2.0
"""Where candidates of a task come from: combinations of small design spaces, evolutions of large ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule
from tvm.s_tir.schedule import Trace

from ..igraph import IGraph
from .candidates import Checker, DesignPoint, VerifyCandidate, form_of
from .context import Context
from .mutator import MutateDecision, options
from .spaces import DesignSpace

#: Seconds of some iGraphs, as the search expects them.
Predict = Callable[[Sequence[IGraph]], Sequence[float] | np.ndarray]

#: A population of an evolution and its generations: with what is verified at some 20 ms each, a few seconds.
POPULATION, GENERATIONS, FROM_DATABASE = 32, 3, 0.25
#: Candidates of one evolution.
PICKS = 16
#: Evolutions in a row without anything new, after which a source is exhausted.
PATIENCE = 3
#: More than anybody measures: MetaSchedule wants a number.
ENDLESS = 1 << 30


def size_of(space: DesignSpace) -> int:
    """Combinations of decisions in a design space.

    A loop's tile is counted as it is by default: how long the loop is may depend on other decisions.
    """
    trace = space.schedule.trace
    return math.prod(len(options(inst, trace)) or 1 for inst in trace.insts)


def combination(trace: Trace, index: int) -> Trace:
    """One combination of decisions, of as many as `size_of` says; a tile is one of the loop's by default."""
    made = trace
    for inst in trace.insts:
        answers = options(inst, trace)
        if answers:
            index, at = divmod(index, len(answers))
            made = made.with_decision(inst, answers[at], remove_postproc=True)
    return made


@derived_object
class Expected(meta_schedule.cost_model.PyCostModel):
    """Scores of candidates for an evolution, by the seconds that a search expects."""

    def __init__(self, checker: Checker, predict: Predict) -> None:
        super().__init__()
        self.checker = checker
        self.expect = predict
        #: Seconds of score 1: an evolution compares scores of different calls.
        self.unit = 0.0

    def load(self, path: str) -> None:
        """Nothing is kept here."""

    def save(self, path: str) -> None:
        """Nothing is kept here."""

    def update(self, context: Any, candidates: Any, results: Any) -> None:
        """The search's own cost model is told by whoever measures."""

    def predict(self, context: Any, candidates: Sequence[Any]) -> np.ndarray:
        """Scores: 1 for the fastest of the first call, a quarter for what takes twice as long."""
        graphs = [self.checker.graph(candidate.sch) for candidate in candidates]
        known = [graph for graph in graphs if graph is not None]
        seconds = iter(np.asarray(self.expect(known), dtype="float64") if known else ())
        times = np.array([math.inf if graph is None else next(seconds) for graph in graphs])
        self.unit = self.unit or float(times.min(initial=math.inf))
        return (self.unit / times) ** 2 if math.isfinite(self.unit) else np.zeros(len(graphs))


class Evolved:
    """Design spaces that begin from one function, searched by MetaSchedule's evolution.

    The measured ones are the parents of the next generation; mutations are judged by the expected seconds.

    Parameters
    ----------
    spaces : sequence of DesignSpace
        With the same ``begun``.
    checker : Checker
    predict : callable
    seed : int
        Of all that is random.
    """

    def __init__(self, spaces: Sequence[DesignSpace], checker: Checker, predict: Predict, seed: int) -> None:
        self.spaces = tuple(spaces)
        self.checker = checker
        self.exhausted = False
        self._forms = {form_of(space.schedule.trace): space for space in spaces}
        self._given: set[str] = set()
        self._empty = 0
        self._database = meta_schedule.database.MemoryDatabase()
        mod = tvm.IRModule({"main": spaces[0].begun})
        self._workload = self._database.commit_workload(mod)
        generator = meta_schedule.space_generator.ScheduleFn(
            lambda sch: None,
            sch_rules=[],
            postprocs=[VerifyCandidate(checker)],
            mutator_probs={MutateDecision(): 0.7, meta_schedule.mutator.MutateTileSize(): 0.3},
        )
        strategy = meta_schedule.search_strategy.EvolutionarySearch(
            population_size=POPULATION,
            init_measured_ratio=FROM_DATABASE,
            init_min_unmeasured=1,
            genetic_num_iters=GENERATIONS,
            eps_greedy=0.1,
        )
        self.context = Context(mod, checker.task.target, generator, strategy, seed % (2**31 - 2) + 1)
        self.context.pre_tuning(
            max_trials=ENDLESS,
            num_trials_per_iter=PICKS,
            design_spaces=[space.schedule for space in spaces],
            database=self._database,
            cost_model=Expected(checker, predict),
        )

    def more(self) -> list[DesignPoint]:
        """Those of one evolution that were not given before, all verified."""
        made = []
        for found in self.context.generate_measure_candidates() or ():
            space = self._forms[form_of(found.sch.trace)]
            candidate = self.checker.candidate(space, found.sch.trace)
            if candidate is not None and candidate.digest not in self._given:
                self._given.add(candidate.digest)
                made.append(candidate)
        self._empty = 0 if made else self._empty + 1
        self.exhausted = self._empty >= PATIENCE
        return made

    def tell(self, candidate: DesignPoint, seconds: float) -> None:
        """A parent of the next evolution, if it is among the fastest."""
        self._given.add(candidate.digest)
        record = meta_schedule.database.TuningRecord(candidate.sch.trace, self._workload, [seconds])
        self._database.commit_tuning_record(record)
