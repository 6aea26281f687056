# SPDX-License-Identifier: Apache-2.0
"""Cases in worker processes with a watchdog: none can hang, crash or slow down the others."""

from __future__ import annotations

import collections
import logging
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from typing import Any

import attrs
import numpy as np

from .cases import Case, array_of, load

#: How a case ends: as the standard says; in a typed error; with other numbers; in another exception; the
#: process died; or it took too long.
PASSED, REFUSED, WRONG, UNTYPED, CRASHED, HUNG = "passed", "refused", "wrong", "untyped", "crashed", "hung"
STATES = (PASSED, REFUSED, WRONG, UNTYPED, CRASHED, HUNG)
#: Target -> by how much quantised bytes may differ: its quotients are within some ULP (docs/numerics.md).
STEPS = {"uir-bang": 1}
#: Seconds after which a case hangs; the slowest that ends takes some twenty on a busy machine.
PATIENCE = 120.0
#: Cases that one process runs: what it allocates it gives back.
PER_WORKER = 150


@attrs.frozen
class Outcome:
    """How a case ended, why, and in how many seconds; ``note`` says how it ran (specialised, on the host)."""

    name: str
    state: str
    text: str = ""
    seconds: float = 0.0
    note: str = ""


def judge(case: Case, target: str) -> Outcome:
    """Compile one case, run it on its data, and compare as the standard's own runner does."""
    import uir_tvm
    from uir_tvm.errors import UirError

    start = time.perf_counter()
    note = ""

    def ended(state: str, text: str = "") -> Outcome:
        return Outcome(case.name, state, text[:2000], round(time.perf_counter() - start, 2), note)

    try:
        shapes = _shapes(case)
        executable = uir_tvm.compile(case.model, target, shapes=shapes or None)
        pairs = []
        for inputs, wanted in case.data:
            found = executable(*[array_of(value) for value in inputs])
            pairs.append((found if isinstance(found, tuple) else (found,), wanted))
        note = ", ".join(k.name for k in getattr(executable.info, "kernels", ()) if k.fallback)
    except UirError as error:
        return ended(REFUSED, f"{type(error).__name__}: {error}")
    except Exception as error:  # every other is a fault of ours
        return ended(UNTYPED, f"{type(error).__name__}: {' '.join(str(error).split())[-600:]}")
    for found, wanted in pairs:
        fault = difference(case, found, wanted, STEPS.get(target, 0))
        if fault:
            return ended(WRONG, fault)
    return ended(PASSED)


def difference(case: Case, found: Sequence[Any], wanted: Sequence[Any], steps: int = 0) -> str:
    """What the standard's own runner says of results that differ; empty where they agree.

    Quantised bytes may differ by ``steps``.
    """
    from onnx.backend.test.runner import Runner

    if steps and "Quantize" in case.group:
        found = [
            want if _near(value, want, steps) else value for value, want in zip(found, wanted, strict=True)
        ]
    try:
        Runner.assert_similar_outputs(
            [array_of(value) for value in wanted], list(found), _relative(case, wanted), case.atol, case.name
        )
    except (AssertionError, TypeError, AttributeError) as error:
        return " ".join(str(error).split())[:600] or type(error).__name__
    return ""


def _near(value: Any, wanted: Any, steps: int) -> bool:
    """Whether both are bytes of one shape that differ by no more than ``steps``."""
    want, got = np.asarray(array_of(wanted)), np.asarray(value)
    if want.dtype not in (np.uint8, np.int8) or got.dtype != want.dtype or got.shape != want.shape:
        return False
    return bool(np.abs(got.astype(int) - want.astype(int)).max(initial=0) <= steps)


def _relative(case: Case, wanted: Sequence[Any]) -> float:
    """The relative error that is allowed: two ULP in float16, as the standard's runner allows in bfloat16.

    The expected numbers were rounded to float16 after each operator; what one kernel computes was not.
    """
    halves = [array_of(value) for value in wanted]
    half = any(isinstance(value, np.ndarray) and value.dtype == np.float16 for value in halves)
    return max(case.rtol, 2.0**-9) if half else case.rtol


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """The shapes of the data, for inputs that the model leaves open."""
    filled = {tensor.name for tensor in case.model.graph.initializer}
    inputs = [value for value in case.model.graph.input if value.name not in filled]
    shapes = {}
    for value, array in zip(inputs, case.data[0][0] if case.data else (), strict=False):
        tensor = value.type.tensor_type
        array = array_of(array)
        if isinstance(array, np.ndarray) and (
            not tensor.HasField("shape") or any(not dim.HasField("dim_value") for dim in tensor.shape.dim)
        ):
            shapes[value.name] = tuple(array.shape)
    return shapes


def _work(pipe: connection.Connection, target: str) -> None:
    """A worker: names in, outcomes out."""
    logging.getLogger("uir_tvm").setLevel(logging.ERROR)
    import uir_tvm  # noqa: F401  the watchdog counts the case's time alone

    cases, parent = load(), os.getppid()
    pipe.send("ready")
    while os.getppid() == parent:  # it ends with the sweep
        if pipe.poll(5.0):
            pipe.send(judge(cases[pipe.recv()], target))


class _Worker:
    """A process that judges one case at a time."""

    def __init__(self, target: str) -> None:
        context = multiprocessing.get_context("fork")  # shares the loaded cases
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, target), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()
        self.name, self.since, self.done = "", 0.0, 0

    def give(self, name: str) -> None:
        self.name, self.since = name, time.monotonic()
        self.pipe.send(name)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def result(self, patience: float) -> Outcome | None:
        """The outcome of its case, once there is one."""
        waited = round(time.monotonic() - self.since, 1)
        # not the pipe's end: the other workers hold copies of it
        alive = self.process.is_alive()
        if self.pipe.poll():
            self.done += 1
            return self.pipe.recv()
        if not alive:
            return Outcome(self.name, CRASHED, f"the process ended with {self.process.exitcode}", waited)
        if waited > patience:
            return Outcome(self.name, HUNG, f"no result after {patience:.0f} s", waited)
        return None


def sweep(
    names: Sequence[str], target: str = "uir-cpu", workers: int = 1, patience: float = PATIENCE
) -> Iterator[Outcome]:
    """Outcomes of cases, as they end."""
    load()
    waiting = collections.deque(names)
    busy: list[_Worker] = []
    try:
        for _ in range(min(workers, len(waiting))):
            busy.append(_Worker(target))
            busy[-1].give(waiting.popleft())
        while busy:
            ends = [end for worker in busy for end in (worker.pipe, worker.process.sentinel)]
            connection.wait(ends, timeout=1.0)
            for worker in list(busy):
                outcome = worker.result(patience)
                if outcome is None:
                    continue
                yield outcome
                spent = outcome.state in (HUNG, CRASHED) or worker.done >= PER_WORKER
                if spent or not waiting:
                    worker.stop()
                    busy.remove(worker)
                    worker = _Worker(target) if waiting else worker
                    busy += [worker] if waiting else []
                if waiting:
                    worker.give(waiting.popleft())
    finally:
        for worker in busy:
            worker.stop()
