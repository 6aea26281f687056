# SPDX-License-Identifier: Apache-2.0
"""What of a model is tuned, by which searches, and under which key its times are kept."""

from __future__ import annotations

import fnmatch
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import tvm

from .. import environment, kernel_graph, threads
from ..errors import DeviceError, TuneError
from ..explain.analytic import distance
from ..import_model import import_model, model_name
from ..kernel_graph import KernelGraph
from ..kernel_graph.choices import Choices, choosing
from ..target import registry
from ..target.place import MODEL
from .cost_model import CostModel
from .database import ScheduleDatabase
from .job import DEFAULTS, Job, Settings
from .key import Key, key_of
from .measure import Measurer
from .search import TaskSearch
from .spaces import design_spaces
from .state import TuningState
from .task import Extracted, Task, tasks_of


def resolved(target: Any, device: str | None) -> tvm.target.Target:
    """A target, at the place where its kernels run.

    Raises
    ------
    TargetError
        An unknown target, hardware model or place.
    """
    return registry.resolve(target, environment.device() if device is None else device).target


def imported(
    model: Any, shapes: Mapping[str, tuple[int, ...]] | None = None, name: str | None = None
) -> tuple[KernelGraph | tvm.IRModule, str]:
    """A model as Relax, or as the graph that it is, and its name.

    Raises
    ------
    FrontendError
        It cannot be imported.
    """
    label = name or model_name(model)
    return (model if isinstance(model, KernelGraph) else import_model(model, shapes)), label


def extracted(
    mod: KernelGraph | tvm.IRModule, where: tvm.target.Target, choices: Choices, fuse: bool = True
) -> Extracted:
    """The tasks of an imported model, its graph built with some choices."""
    if isinstance(mod, KernelGraph) or kernel_graph.calls_kernels(mod):
        return tasks_of(mod, where)
    threads.before_compiling()  # or packing a weight would bind this process to one processor
    with choosing(choices):
        return tasks_of(kernel_graph.build(mod, where, fuse=fuse), where)


def chosen(found: Extracted, pattern: str | None) -> Extracted:
    """The tasks whose names a pattern fits.

    Raises
    ------
    TuneError
        There are none.
    """
    tasks = tuple(t for t in found.tasks if pattern is None or fnmatch.fnmatchcase(t.name, pattern))
    if tasks:
        return attrs.evolve(found, tasks=tasks)
    if found.tasks:
        names = ", ".join(task.name for task in found.tasks)
        raise TuneError(
            f"No kernel is called {pattern!r}.",
            where="kernels, --kernels",
            need="a pattern that fits one of " + names,
        )
    why = "; ".join(f"{name}: {said}" for name, said in found.left.items())
    raise TuneError(
        "The model has no kernel to tune.",
        limit=why or f"all of its {found.library} operators are the library's",
        remedy="there is nothing to do: compile it as it is",
    )


def is_modelled(tasks: Sequence[Task]) -> bool:
    """Whether times of tasks are a host model's."""
    return bool(registry.place_of(tasks[0].target).name == MODEL)


def key_for(measurer: Measurer | None, task: Task, settings: Settings = DEFAULTS) -> Key:
    """What times of a measurer are true of: this machine, or that of its servers.

    Raises
    ------
    DeviceError
        No server says what it is.
    """
    ask = getattr(measurer, "key_of", None)
    if measurer is None or ask is None:
        return key_of(task.target)
    job = Job.of(task, settings=settings)
    key = ask(job.target, job.place)
    if key is None:  # who has measured something has said what it is
        (result,) = measurer.measure([job])
        key = ask(job.target, job.place)
        if key is None:
            raise DeviceError(
                f"No server measures for {job.target}.",
                where=measurer.name,
                limit=result.said,
                remedy="start some with `uir tune-server`, and look at them with its --list",
            )
    return key


def cost_model_of(
    given: CostModel | str | os.PathLike[str] | None, seed: int
) -> tuple[CostModel, Callable[[], None]]:
    """The cost model, and what keeps it."""
    if isinstance(given, CostModel):
        return given, lambda: None
    if given is None:
        return CostModel(seed=seed), lambda: None
    path = pathlib.Path(given)
    made = CostModel.load(path) if path.exists() else CostModel(seed=seed)
    return made, lambda: made.save(path)


def state_for(
    found: Extracted, database: ScheduleDatabase, model: CostModel, seed: int, key: Key | None = None
) -> TuningState:
    """What is known of tasks, with the searches of `search` and the roofline of `analytic`."""
    return TuningState(
        found.tasks,
        database,
        lambda task: _search_of(task, model, seed),
        bound_of=_bound_of,
        cost_model=model,
        modelled=is_modelled(found.tasks),
        key=key,
    )


def _search_of(task: Task, model: CostModel, seed: int) -> TaskSearch:
    return TaskSearch(task, design_spaces(task.func, task.target), model, seed)


def _bound_of(search: TaskSearch) -> float:
    """Seconds of a task's roofline; 0 where they are not known."""
    if search.default is None:
        return 0.0
    return distance(search.default.graph, 1.0) or 0.0
