# SPDX-License-Identifier: Apache-2.0
"""Candidates: schedules of a task that a search may propose, checked before anything is built.

A candidate's schedule is extracted and verified (capacity, races, accesses that are not affine); what is
refused is counted by reason.  Verdicts are remembered by the scheduled function: the search meets the same
one again and again, and asks for its iGraph to predict a time.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
from tvm import tirx
from tvm.ir.utils import derived_object
from tvm.s_tir import Schedule, meta_schedule
from tvm.s_tir.schedule import Trace
from tvm_ffi.structural import structural_hash

from ..errors import ScheduleRefusedError, UirError, VerifyError
from ..extract import extract
from ..function_attributes import hash_text
from ..igraph import HardwareModel, IGraph
from ..optimize import completed
from ..schedule.hardware_of import model_of_target
from .job import DEFAULTS, Job, Settings, replayed, trace_json
from .spaces import DesignSpace
from .task import Task

log = logging.getLogger(__name__)

#: Reasons of refusal besides the verifier's rules: the trace does not apply after another decision; no iGraph
#: says what was scheduled; a fault of the compiler's own.
REPLAY, EXTRACTION, FAULT = "replay", "extraction", "fault"
#: No refusal, but nothing new: another schedule has the same iGraph.
SAME = "same iGraph"

_DECISION = re.compile(r"(, )?decision=(\[[^\]]*\]|\d+)")


@attrs.frozen(eq=False)
class DesignPoint:
    """A schedule that was found right as far as the verifier can tell.

    Parameters
    ----------
    task : Task
        What it computes.
    space : DesignSpace
        Of which it is.
    sch : Schedule
        Its trace begins from ``space.begun`` and has no postprocessors in it.
    graph : IGraph
        As extracted and completed, before the target's passes.
    decisions : mapping of str to int
        What was decided, forks included.
    digest : str
        Of the scheduled function: equal functions have equal digests, in every process.
    predicted : float, optional
        Seconds, as the cost model said when it was proposed.
    """

    task: Task = attrs.field(repr=False)
    space: DesignSpace = attrs.field(repr=False)
    sch: Schedule = attrs.field(repr=False)
    graph: IGraph = attrs.field(repr=False)
    decisions: Mapping[str, int]
    digest: str
    predicted: float | None = None

    def job(self, *, seed: int = 0, settings: Settings = DEFAULTS) -> Job:
        """To be measured; see `Job.of`."""
        return Job.of(self.task, self.space, self.sch, seed=seed, settings=settings)

    def to_json(self) -> dict[str, Any]:
        """As plain data, for `Checker.restore`."""
        return {
            "recipe": self.space.recipe,
            "forks": {name: int(answer) for name, answer in self.space.forks.items()},
            "decisions": {name: int(value) for name, value in self.decisions.items()},
            "digest": self.digest,
            "trace": trace_json(self.sch.trace),
        }


@attrs.frozen
class Verdict:
    """What was found of a scheduled function: its iGraph, or why it has none."""

    digest: str
    graph: IGraph | None = attrs.field(default=None, repr=False)
    reason: str = ""
    said: str = ""


class Checker:
    """Extracts and verifies schedules of one task, each scheduled function once.

    Parameters
    ----------
    task : Task
        Its target says for which hardware.

    Attributes
    ----------
    refused : Counter of str
        Distinct scheduled functions by the reason of their refusal: a rule of the verifier, or one of
        `REPLAY`, `EXTRACTION`, `FAULT`; `SAME` counts those that are nothing new.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.hardware: HardwareModel = model_of_target(task.target)
        self.refused: Counter[str] = Counter()
        self._verdicts: dict[int, Verdict] = {}
        #: The first function that was found to have an iGraph.
        self._owners: dict[int, int] = {}

    def verdict(self, func: tirx.PrimFunc) -> Verdict:
        """The verdict on a scheduled function."""
        key = structural_hash(func)
        if key not in self._verdicts:
            self._verdicts[key] = found = self._judge(func, key)
            if found.reason:
                self.refused[found.reason] += 1
                log.debug("%s: a candidate is refused (%s: %s)", self.task.name, found.reason, found.said)
        return self._verdicts[key]

    def graph(self, sch: Schedule) -> IGraph | None:
        """The iGraph of a schedule; None where it is refused."""
        return self.verdict(sch.mod["main"]).graph

    def replay(self, space: DesignSpace, trace: Trace | list[Any]) -> Schedule | None:
        """A trace applied to the function that its space begins from; None where it does not apply."""
        try:
            return replayed(space.begun, trace, remove_postproc=True)
        except ScheduleRefusedError as error:
            self.refused[REPLAY] += 1
            log.debug("%s: a trace does not apply: %s", self.task.name, error.limit)
            return None

    def candidate(self, space: DesignSpace, trace: Trace) -> DesignPoint | None:
        """What a trace makes of a space's function; None where it is refused.

        Parameters
        ----------
        trace : Trace
            That of the space's schedule with other decisions.
        """
        sch = self.replay(space, trace)
        return None if sch is None else self.of_schedule(space, sch)

    def restore(self, spaces: Iterable[DesignSpace], data: Mapping[str, Any]) -> DesignPoint | None:
        """A candidate from `DesignPoint.to_json`; None where the recipes make no such schedule any more."""
        for space in spaces:
            if space.recipe == data.get("recipe") and dict(space.forks) == dict(data["forks"]):
                sch = self.replay(space, data["trace"])
                if sch is None or form_of(sch.trace) != form_of(space.schedule.trace):
                    return None
                made = self.of_schedule(space, sch)
                return made if made is not None and made.digest == data["digest"] else None
        return None

    def of_schedule(self, space: DesignSpace, sch: Schedule) -> DesignPoint | None:
        """A schedule of a space, made by its trace; None where it is refused."""
        verdict = self.verdict(sch.mod["main"])
        if verdict.graph is None:
            return None
        return DesignPoint(self.task, space, sch, verdict.graph, space.decisions(sch), verdict.digest)

    def _judge(self, func: tirx.PrimFunc, key: int) -> Verdict:
        digest = hash_text(key)
        try:
            graph = completed(extract(func, self.hardware, name=self.task.name))
        except VerifyError as error:
            return Verdict(digest, None, error.rule, str(error))
        except UirError as error:
            return Verdict(digest, None, EXTRACTION, str(error))
        except Exception as error:  # a search of hours does not end for one candidate; the count tells
            log.debug("%s: a fault of the compiler", self.task.name, exc_info=error)
            return Verdict(digest, None, FAULT, f"{type(error).__name__}: {error}")
        owner = self._owners.setdefault(structural_hash(graph), key)
        return Verdict(digest, graph) if owner == key else Verdict(digest, None, SAME)


@derived_object
class VerifyCandidate(meta_schedule.postproc.PyPostproc):
    """Postprocessor of MetaSchedule that refuses what the checker refuses.

    Parameters
    ----------
    checker : Checker
        Of the task; clones ask the same one.
    """

    def __init__(self, checker: Checker) -> None:
        super().__init__()
        self.checker = checker

    def _initialize_with_tune_context(self, context: meta_schedule.TuneContext) -> None:
        """Nothing of the context is needed."""

    def apply(self, sch: Schedule) -> bool:
        """Whether the schedule has an iGraph that no other one has."""
        return self.checker.graph(sch) is not None

    def clone(self) -> VerifyCandidate:
        """For another thread."""
        return VerifyCandidate(self.checker)


def form_of(trace: Trace) -> str:
    """What of a trace does not depend on its decisions: equal for all schedules of a design space."""
    text = _DECISION.sub("", str(trace.simplified(remove_postproc=True)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
