# SPDX-License-Identifier: Apache-2.0
"""What of a model is tuned: its distinct kernels, and how often a run of the model launches each."""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx

from ..frontend.from_kernel import IGRAPH
from ..runtime.kernel_launches import KernelLaunch, launches_of
from ..schedule.begin import is_scheduled
from ..schedule.size_points import SizePoint, merged
from ..schedule.tuned import tuned_origin
from ..target import registry

#: Digits that tell lists of representative sizes of a kernel apart.
SIZES_DIGITS = 8


@attrs.frozen(slots=False)
class Task:
    """A kernel to tune.

    Parameters
    ----------
    name : str
        As the model calls it.
    func : PrimFunc
        As the compiler meets it, not scheduled; sizes that it leaves open are symbols.
    target : tvm.target.Target
        For which hardware, and where it runs (a place of a uir target).
    weight : int
        Launches in a run of the model.
    points : tuple of SizePoint
        Where sizes are open: at which ones its schedules are timed, by the names of its variables; their
        weights are 1 together.
    """

    name: str
    func: tirx.PrimFunc = attrs.field(repr=False, eq=False)
    target: tvm.target.Target = attrs.field(repr=False, eq=False)
    weight: int = 1
    points: tuple[SizePoint, ...] = ()

    @functools.cached_property
    def origin(self) -> str:
        """By what its trials are found again: the kernel (`tuned_origin`), and its representative sizes."""
        origin = tuned_origin(self.func)
        if not self.points:
            return origin
        text = repr([(list(point.sizes.values()), round(point.weight, 9)) for point in self.points])
        return f"{origin}-{hashlib.sha256(text.encode()).hexdigest()[:SIZES_DIGITS]}"


@attrs.frozen
class Extracted:
    """What was found in a model.

    Parameters
    ----------
    tasks : tuple of Task
        In the order of their first launch.
    left : mapping of str to str
        Kernels that nobody can tune, and why.
    library : int
        Launches of the target's library in a run.
    """

    tasks: tuple[Task, ...]
    left: dict[str, str] = attrs.field(factory=dict)
    library: int = 0


def extract_tasks(
    model: Any,
    target: str | tvm.target.Target,
    device: str = "auto",
    sizes: Sequence[Any] | None = None,
    fuse: bool = True,
) -> Extracted:
    """The kernels of a model that can be tuned; equal ones are one, with all their launches.

    Parameters
    ----------
    model
        A graph built for the target (`uir_tvm.kernel_graph.build`), a Relax module whose ``main`` already
        calls kernels, or whatever `uir_tvm.compile` takes. Where that leaves sizes open, a task's function
        has symbols, and serves all sizes.
    target : str or Target
        A uir target.
    device : str
        The place, where the target is a name (`uir_tvm.options.DEVICES`).
    sizes : sequence, optional
        Representative sizes of a model that leaves sizes open, as `SizePoint.of` takes them: a size for each
        symbol and a weight. Default: `schedule.size_points.default_points` of the symbols' ranges.
    fuse : bool
        As of `CompileOptions`, of a model that is built here.

    Raises
    ------
    TargetError
        An unknown target or hardware model.
    TuneError
        Representative sizes that are none, or of a model of which every size is known.
    SizeError
        Representative sizes that the model does not take.
    """
    where = registry.resolve(target, device).target
    return _extracted(launches_of(model, where, sizes, fuse), where)


def _extracted(calls: Iterable[KernelLaunch], where: tvm.target.Target) -> Extracted:
    """The tasks of a model's launches, in the order of the first ones."""
    first: dict[str, KernelLaunch] = {}
    points: dict[str, list[SizePoint]] = {}
    launches: Counter[str] = Counter()
    left: dict[str, str] = {}
    library = 0
    for call in calls:
        why = call.left or ("" if call.func is None else _given(call.func))
        if why:
            left[call.name] = why
        elif call.func is None:
            library += call.program == 0
        else:
            origin = tuned_origin(call.func)
            launches[origin] += first.setdefault(origin, call).program == call.program
            points.setdefault(origin, []).extend(call.points)
    tasks = (
        Task(call.name, call.func, where, launches[origin], merged(points[origin]))
        for origin, call in first.items()
    )
    return Extracted(tuple(tasks), left, library)


def _given(func: tirx.PrimFunc) -> str:
    """Why a kernel keeps the schedule that it has; empty where it has none."""
    if (func.attrs or {}).get(IGRAPH) is not None:
        return "it is an iGraph"
    return "it is scheduled already" if is_scheduled(func) else ""
