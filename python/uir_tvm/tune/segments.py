# SPDX-License-Identifier: Apache-2.0
"""Parts of models as models of their own, timed in turns amid other work."""

from __future__ import annotations

import hashlib
import math
import pathlib
import statistics
import time
from collections.abc import Sequence
from functools import partial

import attrs
import numpy as np
import tvm
from tvm import relax

from .. import threads
from ..kernel_graph import KernelGraph, to_relax, vm_passes
from ..options import CompileOptions
from ..pipeline import recording
from ..runtime.cold_cache import ColdCache
from ..runtime.tensors import TensorSpec, random_inputs
from ..runtime.timed_places import calls_of, in_turns
from ..schedule.hardware_of import model_of_target
from ..target import registry
from ..verify.agreement import Reference, differences
from .job import DEFAULTS, OK, WRONG, Plain, Result, Settings, settings_of

#: A call that takes so many times as long as the default's is timed no further.
HOPELESS = 1.5
#: Which floats are drawn: any.
INPUTS = (-math.inf, math.inf)


@attrs.frozen
class Segment(Plain):
    """A part of a model, to be timed beside the default's same part.

    Parameters
    ----------
    kernel : str
        What people call it.
    module : str
        Path of its Relax module (``tvm.ir.save_json``), on this machine.
    target, place : str
        As of `Job`.
    seed : int
        Of the inputs.
    settings : Settings
    """

    kernel: str
    module: str
    target: str
    place: str
    seed: int = 0
    settings: Settings = attrs.field(default=DEFAULTS, converter=settings_of)


def write(graph: KernelGraph, folder: pathlib.Path) -> str:
    """The path of a file with a graph's module; equal ones share one."""
    text = str(tvm.ir.save_json(to_relax(graph)))
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
    if not path.is_file():
        path.write_text(text)
    return str(path)


class _Executable:
    """A segment that runs."""

    def __init__(self, segment: Segment) -> None:
        target = registry.resolve(segment.target, segment.place).target
        mod = tvm.ir.load_json(pathlib.Path(segment.module).read_text())
        types = [param.ty for param in mod["main"].params]
        options = CompileOptions(dump_dir=None, override_dir=None, database=None)
        with recording(options):
            built = relax.build(vm_passes(target)(mod), target, relax_pipeline=None)
        threads.before_running()
        self.main = relax.VirtualMachine(built, tvm.cpu())["main"]
        specs = [TensorSpec("", tuple(map(int, t.shape)), str(t.dtype)) for t in types]
        self.arrays = random_inputs(specs, segment.seed)
        self.tensors = [tvm.runtime.tensor(array) for array in self.arrays]
        self.between = ColdCache(model_of_target(target), self.tensors, self.arrays)

    def results(self) -> tuple[np.ndarray, ...]:
        """What it computes of its inputs."""
        found = self.main(*self.tensors)
        # a whole model may have one result, and then gives no tuple
        every = (found,) if isinstance(found, tvm.runtime.Tensor) else tuple(found)
        return tuple(np.array(tensor.numpy()) for tensor in every)

    def once(self) -> float:
        """Seconds of a call amid other work."""
        self.between()
        start = time.perf_counter()
        self.main(*self.tensors)
        return time.perf_counter() - start

    def sample(self, least: float) -> float:
        """The median of calls that take so long together, within limits."""
        return statistics.median(self.once() for _ in range(calls_of(self.once(), least)))


def compare(segments: Sequence[Segment]) -> list[Result]:
    """Time segments in turns; the first one is the default, which the others must agree with.

    Raises
    ------
    Exception
        Whatever a build raises: a process that measures makes a result of it.
    """
    made = [_Executable(segment) for segment in segments]
    wanted = made[0].results()
    names = tuple(f"output {number}" for number in range(len(wanted)))
    reference = Reference(names, (True,) * len(wanted), wanted, (wanted,), True, INPUTS)
    results: dict[int, Result] = {}
    for number, one in enumerate(made[1:], 1):
        found = differences(reference, one.results())
        if found:
            results[number] = Result((), WRONG, str(found[0]))
    first = {number: made[number].once() for number in range(len(made)) if number not in results}
    alive = [number for number, seconds in first.items() if seconds <= HOPELESS * first[0] or not number]
    again = {number: made[number].once() for number in first if number not in alive}
    alive += [number for number, seconds in again.items() if seconds <= HOPELESS * first[0]]
    settings = segments[0].settings
    samplers = [partial(made[number].sample, settings.min_repeat_seconds) for number in alive]
    samples = dict(zip(alive, in_turns(samplers, settings.repeats), strict=True))
    for number, seconds in first.items():
        results[number] = Result(samples.get(number) or (min(seconds, again.get(number, seconds)),), OK)
    return [results[number] for number in range(len(segments))]
