# SPDX-License-Identifier: Apache-2.0
"""What of a model is tuned: its distinct kernels, and how often a run of the model launches each."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable

import attrs
import tvm
from tvm import tirx

from .. import kernel_graph
from ..frontend.from_kernel import IGRAPH
from ..function_attributes import origin_of
from ..kernel_graph import KernelGraph
from ..schedule.begin import is_scheduled
from ..target import registry


@attrs.frozen(slots=False)
class Task:
    """A kernel to tune.

    Parameters
    ----------
    name : str
        As the model calls it.
    func : PrimFunc
        As the compiler meets it: static shapes, not scheduled.
    target : tvm.target.Target
        For which hardware, and where it runs (a place of a uir target).
    weight : int
        Launches in a run of the model.
    """

    name: str
    func: tirx.PrimFunc = attrs.field(repr=False, eq=False)
    target: tvm.target.Target = attrs.field(repr=False, eq=False)
    weight: int = 1

    @functools.cached_property
    def origin(self) -> str:
        """By what the database finds the kernel again (`uir_tvm.function_attributes.origin_of`)."""
        return origin_of(self.func)


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
    model: KernelGraph | tvm.IRModule, target: str | tvm.target.Target, device: str = "auto"
) -> Extracted:
    """The kernels of a model that can be tuned; equal ones are one, with all their launches.

    Parameters
    ----------
    model : KernelGraph or IRModule
        A graph built for the target (`uir_tvm.kernel_graph.build`), or a Relax module whose ``main`` already
        calls kernels.
    target : str or Target
        A uir target.
    device : str
        The place, where the target is a name (`uir_tvm.options.DEVICES`).

    Raises
    ------
    TargetError
        An unknown target or hardware model.
    """
    where = registry.resolve(target, device).target
    calls = _calls_of_graph(model) if isinstance(model, KernelGraph) else _calls_of_module(model)
    functions: dict[str, tirx.PrimFunc] = {}
    names: dict[str, str] = {}
    launches: Counter[str] = Counter()
    left: dict[str, str] = {}
    library = 0
    for name, func in calls:
        if func is None:
            library += 1
            continue
        why = _given(func)
        if why:
            left[name] = why
            continue
        origin = origin_of(func)
        functions.setdefault(origin, func)
        names.setdefault(origin, name)
        launches[origin] += 1
    tasks = (Task(names[origin], func, where, launches[origin]) for origin, func in functions.items())
    return Extracted(tuple(tasks), left, library)


def _given(func: tirx.PrimFunc) -> str:
    """Why a kernel keeps the schedule that it has; empty where it has none."""
    if (func.attrs or {}).get(IGRAPH) is not None:
        return "it is an iGraph"
    return "it is scheduled already" if is_scheduled(func) else ""


def _calls_of_graph(graph: KernelGraph) -> Iterable[tuple[str, tirx.PrimFunc | None]]:
    for node in graph.nodes:
        if isinstance(node, kernel_graph.CustomOp):
            yield node.name, node.prim_func
        else:
            yield node.kind, None


def _calls_of_module(mod: tvm.IRModule) -> Iterable[tuple[str, tirx.PrimFunc | None]]:
    for block in mod["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, tvm.ir.Call) or not isinstance(call.op, tvm.ir.Op):
                continue
            if str(call.op.name) in ("relax.call_tir", "relax.call_tir_inplace"):
                yield call.args[0].name_hint, mod[call.args[0]]
            elif str(call.op.name) == "relax.call_dps_packed":
                yield "library", None
