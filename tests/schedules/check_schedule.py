# SPDX-License-Identifier: Apache-2.0
"""One random schedule of one random program: what is accepted computes what NumPy says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from hypothesis import strategies as st
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.errors import CodegenError, ExtractionError, PassError, ScheduleError, UirError, VerifyError
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.optimize import optimize
from uir_tvm.pipeline import compile_kernel
from uir_tvm.runtime.kernel import tensor_of
from uir_tvm.schedule.hardware_of import model_of_target
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import verify

from tests.as_programs import run_igraph
from tests.extracted import extracted

from .check_program import _agree
from .in_numpy import in_numpy
from .in_te import to_prim_func
from .program import Program, describe, random_inputs
from .random_schedules import Trial, devices

_NUMPY = {row.tvm: row.numpy for row in DTYPES.values()}
#: What a schedule may be refused with.
REFUSALS = (ScheduleError, ExtractionError, VerifyError, CodegenError)


class Finding(AssertionError):
    """A schedule that was accepted and is wrong, or refused with an error of no type of ours."""


def check(program: Program, draw: Callable[[Any], Any], seed: int = 0, target: str = "uir-cpu") -> str:
    """Schedule a program at random, for a CPU or a device of groups, and run what comes of it.

    On another target than uir-cpu the device is of the target's kind, and the emitted code runs too.

    Returns
    -------
    str
        ``cpu``, ``groups`` or the kind of the target where it was accepted, else the reason of the refusal.

    Raises
    ------
    Finding
        With the program, the steps of the schedule and the iGraph.
    """
    chosen = TARGETS[target].target()
    on_cpu = TARGETS[target].kind == "cpu" and bool(draw(st.integers(0, 1)))
    emitting = "" if TARGETS[target].kind == "cpu" else target
    model = model_of_target(chosen)
    hardware = model if on_cpu else devices(draw, model if emitting else None)
    func = to_prim_func(program).with_attr("global_symbol", "main")
    trial = Trial(Schedule(func, debug_mask="none", error_render_level="fast"), hardware, draw)
    seen: list[Any] = []
    try:
        return _check(program, trial, chosen if on_cpu else None, emitting, seed, seen)
    except REFUSALS as error:
        return reason_of(error)
    except Exception as error:
        # an instruction of TVM's own, that no primitive of ours stands in front of
        if isinstance(error, TVMScheduleError):
            return "TVM refuses an instruction"
        # a pipeline that only the iGraph shows to be impossible
        if isinstance(error, PassError) and isinstance(error.__cause__, ScheduleError | PassError):
            return reason_of(error.__cause__)
        raise Finding(_report(program, trial, seen, error)) from error


def reason_of(error: UirError) -> str:
    """The class and the sentence of a refusal, without the names and numbers of this one."""
    kind = f"{type(error).__name__}.{error.rule}" if isinstance(error, VerifyError) else type(error).__name__
    what = re.sub(r"'[^']*'|\"[^\"]*\"", "'..'", error.what.splitlines()[0])
    return f"{kind}: {re.sub(r'[0-9]+', '#', what)[:90]}"


def _check(program: Program, trial: Trial, target: Any, emitting: str, seed: int, seen: list[Any]) -> str:
    trial.run()
    func = trial.sch.mod["main"]
    inputs = random_inputs(program, seed)
    expected, largest = in_numpy(program, inputs)
    if target is None:
        graph = extracted(func, trial.hardware, "main")
        seen.append(graph)
        verify(graph)
        _compare(graph, inputs, expected, program, largest, "extracted graph")
        seen.append(optimized := optimize(graph).graph)
        _compare(optimized, inputs, expected, program, largest, "optimised graph")
        if not emitting:
            return "groups"
        for got, want in zip(run_igraph(optimized, emitting, *inputs), expected, strict=True):
            _agree(got.reshape(want.shape), want, program, largest, "the emitted code is not what NumPy says")
        return str(trial.hardware.kind)
    record = compile_kernel(func, target, "main")
    if record.fallback or record.igraph is None:
        return "uir-cpu, " + re.sub(r"[0-9]+", "#", record.fallback.splitlines()[0])[:90]
    seen.append(record.igraph)
    _compare(record.igraph, inputs, expected, program, largest, "interpreter")
    outputs = func.params[len(inputs) :]
    # what is not written must not look right by chance
    blank = [np.full([int(n) for n in p.shape], 77, _NUMPY[str(p.dtype)]) for p in outputs]
    tensors = [tensor_of(a, a.shape) for a in [*inputs, *blank]]
    with called_by_a_program():
        built = tvm.compile(tvm.IRModule({"main": record.lowered}), target=target)
    built["main"](*tensors)
    for got, want in zip(tensors[len(inputs) :], expected, strict=True):
        _agree(got.numpy(), want, program, largest, "the emitted code is not what NumPy says")
    return "cpu"


def _compare(
    graph: IGraph, inputs: list[Any], expected: list[Any], program: Program, largest: float, what: str
) -> None:
    try:
        results = interpreter.run(graph, *inputs)
    except UirError as error:
        # whatever the verifier accepts runs
        raise AssertionError(f"{what}: the interpreter refuses: {error}") from error
    for got, want in zip(results, expected, strict=True):
        _agree(
            np.asarray(got).reshape(want.shape), want, program, largest, f"the {what} is not what NumPy says"
        )


def _report(program: Program, trial: Trial, seen: list[Any], error: Exception) -> str:
    graph = f"\n{seen[-1]}" if seen else ""
    steps = "\n".join(f"  {s}" for s in trial.steps)
    return (
        f"{type(error).__name__}: {str(error)[:1500]}\n--- program\n" + "\n".join(describe(program))
        + f"\n--- schedule on {trial.hardware.name}\n{steps}\n--- iGraph{graph}"
    )  # fmt: skip
