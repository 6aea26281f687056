# SPDX-License-Identifier: Apache-2.0
"""What is refused never becomes a candidate, is counted by its reason, and is judged once."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm
from tvm import tirx
from tvm.relax import op
from tvm.s_tir import Schedule
from tvm_ffi.structural import structural_equal
from uir_tvm.errors import VerifyError
from uir_tvm.schedule.decisions import Sampled
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target import registry
from uir_tvm.tune import candidates
from uir_tvm.tune.candidates import FAULT, REPLAY, SAME, Checker, DesignPoint, VerifyCandidate, form_of
from uir_tvm.tune.job import Job
from uir_tvm.tune.mutator import neighbours
from uir_tvm.tune.spaces import DesignSpace, design_spaces
from uir_tvm.tune.task import Task

from . import synthetic

ROWS, COLUMNS = 64, 4096


def wide(target: str = "uir-ascend:910b2") -> Task:
    """relu of rows of 16 KiB."""
    func = from_relax(lambda x: op.nn.relu(x), [(ROWS, COLUMNS)], lambda x: x).func
    return Task("relu", func.with_attr("global_symbol", "relu"), registry.resolve(target, "model").target)


def rows_of(task: Task, *rows: int) -> DesignSpace:
    """Tiles of whole rows."""
    sch = Schedule(task.func, debug_mask="none")
    decisions = Sampled()
    chosen = decisions.choose(sch, "rows", rows, rows[0])
    sch.map_to_units("compute", tile=(chosen, COLUMNS))
    return DesignSpace("by hand", {}, task.func, sch, tuple(decisions.names))


def small() -> tuple[Checker, list[DesignSpace]]:
    """A small kernel of uir-cpu and its spaces."""
    task = synthetic.task()
    return Checker(task), design_spaces(task.func, task.target)


def own(checker: Checker, space: DesignSpace) -> DesignPoint:
    """The space's own schedule, which is right."""
    found = checker.candidate(space, space.schedule.trace)
    assert found is not None
    return found


def test_a_tile_that_has_no_room_is_refused_by_the_rule_for_capacity() -> None:
    """64 rows of 16 KiB are 1 MiB; 192 KiB of unified buffer hold one row, its result and more."""
    task = wide()
    space, checker = rows_of(task, 1, ROWS), Checker(task)
    found = own(checker, space)
    assert found.decisions == {"rows": 1}
    (other,) = neighbours(space.schedule.trace)
    assert checker.candidate(space, other) is None
    assert checker.refused == {"capacity": 1}


def test_what_the_verifier_refuses_is_counted_by_its_rule_and_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = []

    def refuse(graph: object) -> None:
        calls.append(graph)
        raise VerifyError("two units write it", rule="race")

    monkeypatch.setattr(candidates, "completed", refuse)
    checker, (space, *_) = small()
    for _ in range(3):
        assert checker.candidate(space, space.schedule.trace) is None
    assert checker.refused == {"race": 1} and len(calls) == 1
    verdict = checker.verdict(space.schedule.mod["main"])
    assert verdict.graph is None and "two units" in verdict.said


def test_a_fault_of_the_compiler_is_a_refusal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(func: tirx.PrimFunc, hw: object, name: str) -> None:
        raise ZeroDivisionError("no")

    monkeypatch.setattr(candidates, "extract", fail)
    checker, (space, *_) = small()
    assert checker.candidate(space, space.schedule.trace) is None
    assert checker.refused == {FAULT: 1}


def test_a_trace_that_does_not_apply_is_refused() -> None:
    checker, (space, *_) = small()
    other = wide("uir-ascend:910b2")
    elsewhere = DesignSpace("elsewhere", {}, other.func, space.schedule, space.names)
    assert checker.candidate(elsewhere, space.schedule.trace) is None
    assert checker.refused == {REPLAY: 1}


def test_a_function_with_an_igraph_that_is_known_is_nothing_new() -> None:
    """An annotation that nobody reads makes another function of the same iGraph."""
    checker, (space, *_) = small()
    assert checker.graph(space.schedule) is not None
    noted = space.schedule.copy()
    noted.annotate(noted.get_loops(noted.get_child_blocks(noted.get_sblock("root"))[0])[0], "note", 1)
    assert checker.graph(noted) is None
    assert checker.refused == {SAME: 1}
    # the first one stays what it is
    assert checker.graph(space.schedule) is not None


def test_equal_functions_have_equal_digests_and_are_replayed_from_the_trace() -> None:
    checker, (space, *_) = small()
    found = own(checker, space)
    again = own(Checker(checker.task), space)
    assert found.digest == again.digest
    others = [checker.candidate(space, trace) for trace in neighbours(space.schedule.trace)]
    digests = {other.digest for other in others if other is not None}
    assert digests and found.digest not in digests
    replayed = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none")
    found.sch.trace.apply_to_schedule(replayed, remove_postproc=False)
    assert structural_equal(replayed.mod["main"], space.schedule.mod["main"])


def test_the_postprocessor_says_what_the_checker_says() -> None:
    task = wide()
    space, checker = rows_of(task, 1, ROWS), Checker(task)
    (other,) = neighbours(space.schedule.trace)
    postprocessor: Any = VerifyCandidate(checker).clone()
    assert postprocessor.apply(space.schedule)
    assert not postprocessor.apply(checker.replay(space, other))
    assert checker.refused == {"capacity": 1}


def test_a_candidate_is_a_job_and_comes_back_from_json() -> None:
    checker, spaces = small()
    trace = next(trace for trace in neighbours(spaces[0].schedule.trace))
    found = checker.candidate(spaces[0], trace)
    assert found is not None
    job = found.job(seed=3)
    assert isinstance(job, Job) and job.seed == 3 and job.decisions == found.decisions
    data = json.loads(json.dumps(found.to_json()))
    fresh = Checker(checker.task)
    back = fresh.restore(design_spaces(checker.task.func, checker.task.target), data)
    assert back is not None and back.digest == found.digest and back.decisions == found.decisions


@pytest.mark.parametrize("change", ["recipe", "forks", "trace", "digest"])
def test_a_candidate_of_a_space_that_is_no_more_does_not_come_back(change: str) -> None:
    checker, spaces = small()
    data = own(checker, spaces[0]).to_json()
    data[change] = {"recipe": "gone", "forks": {"gone": 1}, "trace": [[], []], "digest": "0"}[change]
    assert checker.restore(spaces, data) is None


def test_the_form_of_a_trace_is_that_of_its_space() -> None:
    space, other = synthetic.space(), synthetic.space(4)
    assert form_of(space.schedule.trace) != form_of(other.schedule.trace)
    for trace in neighbours(space.schedule.trace):
        sch = Schedule(synthetic.module_of(space.begun), debug_mask="none")
        trace.apply_to_schedule(sch, remove_postproc=True)
        sch.enter_postproc()
        assert form_of(sch.trace) == form_of(space.schedule.trace)
