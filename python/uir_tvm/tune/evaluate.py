# SPDX-License-Identifier: Apache-2.0
"""Measure a schedule: what every worker does, here or on another machine.

A schedule is replayed from its trace and goes through the pipeline as one of a database does.  Its kernel
runs on random input, and what it computes is compared with TVM's own lowering of the unscheduled kernel.
Only then is it timed.

    python -m uir_tvm.tune.evaluate JOB.json        measure one job again, such as a rejected one
"""

from __future__ import annotations

import json
import logging
import pathlib
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs
import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from .. import pipeline
from ..bound_kernel import kernel_at
from ..errors import DeviceModelError, UirError, first_line
from ..options import CompileOptions
from ..pipeline import KernelRecord
from ..runtime import timed_places
from ..runtime.timed_places import Runner, in_turns
from ..schedule.tuned import scheduled_as
from ..target import registry
from ..verify.agreement import Reference, differences
from . import wrong
from .job import CRASHED, OK, REFUSED, WRONG, Job, Result, replayed
from .reference_results import reference_of
from .segments import Segment, compare

log = logging.getLogger(__name__)

#: What a job is at, for those who watch: each may take `Settings.timeout_seconds`.
BUILDING, COMPARING, TIMING = "building", "computing the reference", "running and timing"
#: Called with it.
OnStage = Callable[[str], None]
#: What a level of `CompileOptions.equivalence` a confirmed schedule has to pass.
CONFIRMED = "sampled"

T = TypeVar("T")


@attrs.frozen
class _Ready:
    """A kernel that computes the right thing, at each of the job's sizes; what is to be said of it."""

    job: Job
    runners: Sequence[Runner]
    note: str


def run_job(job: Job, on_stage: OnStage | None = None) -> Result:
    """Measure a job in this process, where a candidate that crashes or never ends takes it along.

    Parameters
    ----------
    on_stage : callable, optional
        Called with what it is at.

    Returns
    -------
    Result
        Whatever the candidate does that does not end the process.
    """
    return run_in_turns([job], on_stage, "none")[0]


def run_in_turns(
    jobs: Sequence[Job], on_stage: OnStage | None = None, equivalence: str = CONFIRMED
) -> list[Result]:
    """Measure jobs in this process, a sample of each in turn, so that what slows the machine slows all.

    They are held to more than candidates: their iGraphs are compared with their functions on special
    numbers too, as the compiler does when it first meets a schedule of a database.

    Parameters
    ----------
    on_stage : callable, optional
        Called with what it is at.
    equivalence : str
        As of `CompileOptions`.
    """
    watch = on_stage or (lambda stage: None)
    made = [settled(_checked, job, watch, equivalence) for job in jobs]
    ready = [one for one in made if isinstance(one, _Ready)]
    watch(TIMING)
    timed = settled(_timed, ready)
    times = iter(timed if isinstance(timed, list) else [timed] * len(ready))
    return [one if isinstance(one, Result) else next(times) for one in made]


def run_segments(segments: Sequence[Segment]) -> list[Result]:
    """Time parts of a model in turns; what one of them does that cannot be timed is the result of all."""
    found = settled(compare, segments)
    return [found] * len(segments) if isinstance(found, Result) else found


def settled(function: Callable[..., T], *arguments: Any) -> T | Result:
    """What a function gives; the result of a candidate that goes another way inside."""
    try:
        return function(*arguments)
    except UirError as error:
        return Result((), REFUSED, str(error))
    except Exception as error:  # whatever a candidate raises is its result
        log.debug("a candidate failed", exc_info=error)
        said = first_line(error) if str(error).strip() else "no message"
        return Result((), CRASHED, f"{type(error).__name__}: {said}")


def _checked(job: Job, on_stage: OnStage, equivalence: str) -> _Ready | Result:
    """The job's kernel, which computes the right thing; a result where it does not."""
    target = target_of(job)
    timed_places.require(target)
    on_stage(COMPARING)
    func = tvm.ir.load_json(job.func)
    references = [reference_of(text, job.seed) for text in _texts(job, func)]
    on_stage(BUILDING)
    sch = schedule_of(job, func)
    record = _compiled(job, func, target, sch, equivalence)
    if isinstance(record, Result):
        return record
    runners: list[Runner] = []
    first: dict[int, Runner] = {}
    for at, reference in enumerate(references):
        sizes, where = (job.points[at].sizes, f"at {job.points[at]}: ") if job.points else ({}, "")
        serves = record.serving(sizes)  # the default may have variants
        like = first.get(id(serves))
        runner = timed_places.runner_of(serves, func, target, reference.arguments, sizes, like)
        first.setdefault(id(serves), runner)
        on_stage(TIMING)
        faults = [where + fault for fault in _faults(runner, reference, job)]
        if faults:
            said = faults[0] if len(faults) == 1 else f"{faults[0]} (and {len(faults) - 1} more lines)"
            report = wrong.report_of(job, record, reference, faults, sch)
            return Result((), WRONG, said, report, runner.modelled)
        runners.append(runner)
    return _Ready(job, runners, record.fallback)


def _texts(job: Job, func: tirx.PrimFunc) -> list[str]:
    """The kernel at each of the job's sizes, as `reference_of` takes it."""
    if not job.points:
        return [job.func]
    return [str(tvm.ir.save_json(kernel_at(func, point.sizes))) for point in job.points]


def compiled(job: Job) -> KernelRecord | Result:
    """What the pipeline makes of a job's schedule, for others to run; a result where it makes nothing."""

    def made() -> KernelRecord | Result:
        func = tvm.ir.load_json(job.func)
        return _compiled(job, func, target_of(job), schedule_of(job, func), "none")

    return settled(made)


def target_of(job: Job) -> tvm.target.Target:
    """The target of a job, at its place.

    Raises
    ------
    TargetError
        This version knows no such target, hardware model or place.
    """
    return registry.resolve(job.target, job.place).target


def schedule_of(job: Job, func: tirx.PrimFunc) -> Schedule | None:
    """The schedule of a job, made again from its trace; None for the compiler's own.

    Raises
    ------
    ScheduleRefusedError
        The trace does not apply.
    """
    if job.trace is None:
        return None
    return replayed(func if job.begun is None else tvm.ir.load_json(job.begun), job.trace)


def _compiled(
    job: Job, func: tirx.PrimFunc, target: tvm.target.Target, sch: Schedule | None, equivalence: str
) -> KernelRecord | Result:
    """What the pipeline makes of a schedule, or of the compiler's own; a result where it makes nothing."""
    # whatever this process's environment says: candidates are compared with what models are compiled to
    options = CompileOptions(dump_dir=None, override_dir=None, database=None, equivalence=equivalence)
    with pipeline.recording(options):
        if sch is None:
            record = pipeline.compile_kernel(func, target, job.kernel)
        else:
            scheduled = scheduled_as(func, sch.mod["main"])
            record = pipeline.compile_scheduled(func, target, scheduled, job.kernel)
    # TVM's own lowering is what a model gets of a kernel that has no iGraph, and a CPU can time it
    if record.fallback and not (sch is None and registry.place_of(target).device == "cpu"):
        return Result((), REFUSED, record.fallback)
    return record


def _faults(runner: Runner, reference: Reference, job: Job) -> list[str]:
    """What is wrong with what a kernel computes, most telling first."""
    try:
        called = runner.call()
    except DeviceModelError as error:
        return [str(error)]
    found = list(called.faults)
    for difference in differences(reference, called.results, job.settings.tolerance):
        found += [str(difference), *(f"  {example}" for example in difference.examples)]
    return found


def _timed(ready: Sequence[_Ready]) -> list[Result]:
    """Samples of all, in turns at each size; a modelled time is the same in every run."""
    samples: list[list[list[float]]] = [[] for _ in ready]
    repeats = max((one.job.settings.repeats for one in ready), default=0)
    for at in range(max((len(one.runners) for one in ready), default=0)):
        those = [number for number, one in enumerate(ready) if at < len(one.runners)]
        samplers = [
            partial(ready[n].runners[at].sample, ready[n].job.settings.min_repeat_seconds) for n in those
        ]
        for number, seconds in zip(those, in_turns(samplers, repeats), strict=True):
            samples[number].append(seconds[: 1 if ready[number].runners[at].modelled else None])
    return [_result(one, rows) for one, rows in zip(ready, samples, strict=True)]


def _result(one: _Ready, samples: Sequence[Sequence[float]]) -> Result:
    """What samples at each size of a job come to."""
    last, weights = one.runners[-1], [point.weight for point in one.job.points]
    seconds, by_size = samples[0], samples if weights else ()
    if weights:
        each = zip(*samples, strict=True)
        seconds = [sum(w * t for w, t in zip(weights, row, strict=True)) for row in each]
    return Result(seconds, OK, one.note, modelled=last.modelled, bound=last.bound, by_size=by_size)


def main() -> int:
    """Measure the job of a file and say what came of it; 1 unless it is right."""
    if len(sys.argv) != 2:
        print("usage: python -m uir_tvm.tune.evaluate JOB.json", file=sys.stderr)
        return 2
    job = Job.from_json(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    result = run_job(job)
    print(json.dumps({**result.to_json(), "report": ""}))
    print(result.report)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
