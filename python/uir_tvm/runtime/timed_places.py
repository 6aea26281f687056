# SPDX-License-Identifier: Apache-2.0
"""How a compiled kernel is called and timed at each place."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import attrs
import numpy as np
import tvm
import tvm_ffi
from tvm import tirx

from .. import threads
from ..device.device_kernel import DeviceKernel
from ..device.kind import counts_time
from ..device.run_text import Ran, run
from ..errors import DeviceError
from ..igraph.tir_sizes import sizes_at
from ..pipeline import KernelRecord
from ..schedule.hardware_of import model_of_target
from ..target import registry
from ..target.device_module import device_module
from ..target.place import MODEL, Place
from .cold_cache import ColdCache

#: Milliseconds in a second, which TVM's evaluator takes.
MILLI = 1e3
#: Calls of a sample on a CPU: each takes some milliseconds of other work before it.
LEAST_CALLS, CALLS = 3, 10
#: What TVM's evaluator calls before each of them.
BEFORE = "uir.tune.between_calls"


def in_turns(samplers: Sequence[Callable[[], float]], repeats: int) -> list[list[float]]:
    """So many samples of each, in turns, every other round the other way round."""
    found: list[list[float]] = [[] for _ in samplers]
    for turn in range(repeats):
        for sampler, seconds in list(zip(samplers, found, strict=True))[:: -1 if turn % 2 else 1]:
            seconds.append(sampler())
    return found


def calls_of(once: float, least: float) -> int:
    """How many calls amid other work a sample is of, where one takes so long, and all are to."""
    return max(LEAST_CALLS, min(CALLS, math.ceil(least / max(once, 1e-9))))


@attrs.frozen
class Called:
    """What became of a call.

    Parameters
    ----------
    results : tuple of ndarray or None
        All parameters afterwards; None where a place does not say.
    faults : tuple of str
        What the place itself found wrong.
    """

    results: tuple[np.ndarray | None, ...]
    faults: tuple[str, ...] = ()


@attrs.frozen(eq=False)
class TimedCall:
    """A compiled kernel and what it is called with; see `runner_of`."""

    record: KernelRecord
    func: tirx.PrimFunc
    target: tvm.target.Target
    arguments: Sequence[np.ndarray]
    sizes: Mapping[str, int]

    def passed(self, tensors: Sequence[tvm.runtime.Tensor]) -> list[Any]:
        """What its code takes: tensors, and the numbers that it does not find in their shapes."""
        lowered = self.record.lowered
        if isinstance(lowered, DeviceKernel):
            return [*tensors, *sizes_at((size.name for size in lowered.sizes), self.sizes).values()]
        rest = iter(tensors)
        return [next(rest) if tirx.is_buffer_var(p) else self.sizes[str(p.name)] for p in self.func.params]


class Runner(Protocol):
    """One kernel at one place."""

    #: Whether times are modelled: the same in every run.
    modelled: bool

    def call(self) -> Called:
        """Call the kernel on the arguments as they were given."""
        ...

    def sample(self, least: float) -> float:
        """Seconds of a call, by as many as take so long; after `call`."""
        ...

    @property
    def bound(self) -> str:
        """What binds the time, where that is known."""
        ...


class Timed:
    """A kernel that a processor runs, timed by calls one after the other."""

    modelled = False
    bound = ""

    def __init__(self, given: TimedCall, like: Timed | None = None) -> None:
        place = registry.place_of(given.target)
        if place.device == "ext_dev":
            # whose memory that device is, a process settles once
            tvm_ffi.get_global_func("uir.runtime.ext_dev.choose")(place.name)
        self.device = tvm.device(place.device, 0)
        threads.before_running()
        self.module: Any = _built(given.record, given.target, place) if like is None else like.module
        self.given, self.arguments = given, given.arguments
        self.tensors: list[tvm.runtime.Tensor] = []
        self.passed: list[Any] = []

    def call(self) -> Called:
        """See `Runner.call`."""
        self.tensors = [tvm.runtime.tensor(array, self.device) for array in self.arguments]
        self.passed = self.given.passed(self.tensors)
        self.module["main"](*self.passed)
        self.device.sync()
        return Called(tuple(tensor.numpy() for tensor in self.tensors))

    def sample(self, least: float) -> float:
        """See `Runner.sample`: the mean; one more call before wakes threads and fills caches."""
        evaluate = self.module.time_evaluator(
            "main", self.device, number=1, repeat=1, min_repeat_ms=round(MILLI * least)
        )
        return float(evaluate(*self.passed).results[0])


class Amid(Timed):
    """A kernel of this CPU, timed as one amid others.

    In a model a kernel does not meet what it left in the caches itself: weights have streamed through them
    since, and of its tensors they hold what the kernel before has just written.  The fastest of calls one
    after the other may be slower there.
    """

    def __init__(self, given: TimedCall, like: Timed | None = None) -> None:
        super().__init__(given, like)
        self.hardware = model_of_target(given.target)
        graph = given.record.optimized
        #: Which parameters the kernel reads.
        self.read = [p.role != "out" for p in graph.params] if graph else [True] * len(given.arguments)
        self.between: ColdCache | None = None

    def sample(self, least: float) -> float:
        """See `Runner.sample`: the median of calls, `CALLS` at most, with other work before each."""
        if self.between is None:
            read = [(t, a) for t, a, r in zip(self.tensors, self.arguments, self.read, strict=True) if r]
            self.between = ColdCache(self.hardware, [t for t, _ in read], [a for _, a in read])
        tvm_ffi.register_global_func(BEFORE, self.between, override=True)
        start = time.perf_counter()
        self.module["main"](*self.passed)
        count = calls_of(time.perf_counter() - start, least)
        evaluate = self.module.time_evaluator("main", self.device, number=1, repeat=count, f_preproc=BEFORE)
        return float(statistics.median(evaluate(*self.passed).results))


def _built(record: KernelRecord, target: tvm.target.Target, place: Place) -> tvm.runtime.Module:
    """A module with the kernel as its function ``main``."""
    if isinstance(record.lowered, DeviceKernel):
        return device_module({"main": record.lowered}, place)
    func = record.lowered.with_attr("global_symbol", "main")
    return tvm.compile(tvm.IRModule({"main": func}), target=target).jit()


class Modelled:
    """A kernel on the host model of its device, which checks every access and counts time."""

    modelled = True

    def __init__(self, given: TimedCall, _like: Any = None) -> None:
        assert isinstance(given.record.lowered, DeviceKernel), given.record.name
        self.kernel, self.arguments, self.sizes = given.record.lowered, given.arguments, given.sizes
        self.ran: Ran | None = None

    def call(self) -> Called:
        """See `Runner.call`."""
        params = self.kernel.params
        inputs = [a for a, p in zip(self.arguments, params, strict=True) if p.role != "out"]
        sizes = sizes_at((size.name for size in self.kernel.sizes), self.sizes)
        ran = self.ran = run(self.kernel, inputs, sizes=sizes)
        faults = [str(finding) for result in ran.results for finding in result.findings]
        if not faults:
            faults = [f"{name} has bytes that nothing wrote" for name in ran.unwritten]
        return Called(tuple(ran.outputs.get(p.name) for p in params), tuple(faults))

    def sample(self, least: float) -> float:
        """See `Runner.sample`: the modelled seconds of the call that was checked."""
        assert self.ran is not None
        return sum(float(result.modelled["seconds"]) for result in self.ran.results)

    @property
    def bound(self) -> str:
        """See `Runner.bound`: of the launch that takes longest."""
        assert self.ran is not None
        longest = max((result.modelled for result in self.ran.results), key=lambda row: row["seconds"])
        return str(longest.get("bound", ""))


def runner_of(
    record: KernelRecord,
    func: tirx.PrimFunc,
    target: tvm.target.Target,
    arguments: Sequence[np.ndarray],
    sizes: Mapping[str, int],
    like: Any = None,
) -> Runner:
    """A compiled kernel at the place of a target.

    Parameters
    ----------
    func : PrimFunc
        What was compiled.
    arguments : sequence of ndarray
        For its buffers, in order.
    sizes : mapping of str to int
        A number for each of its open sizes.
    like : Runner, optional
        One of the same kernel at other sizes, whose code is taken.
    """
    place, given = registry.place_of(target), TimedCall(record, func, target, arguments, sizes)
    if place.name == MODEL:
        return Modelled(given)
    return (Amid if place.device == "cpu" else Timed)(given, like)


def require(target: tvm.target.Target) -> None:
    """Refuse a target whose kernels nobody can time on this machine.

    Raises
    ------
    DeviceError
        There is no such device here, or its host model counts no time.
    """
    spec, place = registry.of_target(target), registry.place_of(target)
    need, why = f"a {place.name}", place.absent()
    if place.name == MODEL and not counts_time(spec.kind):
        others = [row for row in spec.places if row.name != MODEL]
        need = f"a {others[0].name}: the host model of {spec.name} checks kernels and counts no time"
        why = "; ".join(f"no {row.name}: {row.absent()}" for row in others if row.absent()) or "a host model"
    if why:
        raise DeviceError(
            f"Nobody times kernels for {spec.name} on {place.name} here.",
            need=need,
            limit=why,
            remedy="measure where there is one: uir tune --rpc, or --export-batch",
        )
