# SPDX-License-Identifier: Apache-2.0
"""What of a model is tuned, by which searches, and under which key its times are kept."""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import tvm

from .. import kernel_graph, threads
from ..errors import DeviceError, TuneError
from ..import_model import model_name
from ..kernel_graph import KernelGraph
from ..kernel_graph.choices import Choices, choosing
from ..runtime.kernel_launches import read_model
from ..schedule.size_points import given_points
from ..target import registry
from ..target.place import MODEL
from .cost_model import CostModel
from .database import ScheduleDatabase
from .job import DEFAULTS, Job, Settings
from .key import Key, key_of
from .measure import Measurer
from .search import TaskSearch
from .session import Watcher
from .spaces import design_spaces
from .state import TuningState
from .task import Extracted, Task, extract_tasks


@attrs.frozen(slots=False)
class Subject:
    """A model that is tuned for a target; what it is of is as `tune_model.tune` takes it.

    Parameters
    ----------
    target : Target
        At the place where its kernels run.
    """

    model: Any
    target: tvm.target.Target
    database: ScheduleDatabase = attrs.field(converter=lambda given: ScheduleDatabase(given).to_write())
    kernels: str | None = None
    cost_model: CostModel | str | os.PathLike[str] | None = None
    seed: int = 0
    shapes: Mapping[str, tuple[int, ...]] | None = None
    name: str | None = None
    fuse: bool = True
    sizes: Sequence[Any] | None = None
    watcher: Watcher = attrs.field(default=None, converter=lambda given: given or Watcher())

    @functools.cached_property
    def mod(self) -> Any:
        """It as `read_model` reads it: as Relax, as the graph that it is, or as a model with open sizes.

        Raises
        ------
        FrontendError
            It cannot be imported.
        TuneError
            Representative sizes that are none of it.
        """
        self.watcher.phase("reading the model")
        read = read_model(self.model, self.shapes)
        if self.sizes is not None:  # before anything is tuned
            given_points(self.sizes, getattr(getattr(read, "signature", None), "symbols", ()))
        return read

    @property
    def is_open(self) -> bool:
        """Whether it leaves sizes open."""
        return not isinstance(self.mod, KernelGraph | tvm.IRModule)

    @property
    def label(self) -> str:
        """Its name."""
        return self.name or model_name(self.model)

    @functools.cached_property
    def learned(self) -> CostModel:
        """The cost model."""
        if isinstance(self.cost_model, CostModel):
            return self.cost_model
        if self.cost_model is None or not os.path.exists(self.cost_model):
            return CostModel(seed=self.seed)
        return CostModel.load(self.cost_model)

    def save(self) -> None:
        """Keep the cost model, where it is one of a file."""
        if self.cost_model is not None and not isinstance(self.cost_model, CostModel):
            self.learned.save(self.cost_model)

    @property
    def calls_kernels(self) -> bool:
        """Whether it is given as kernels, with nothing left to choose."""
        mod = self.mod
        return isinstance(mod, KernelGraph) or (not self.is_open and kernel_graph.calls_kernels(mod))

    def graph(self, choices: Choices) -> KernelGraph:
        """Its graph under some choices."""
        threads.before_compiling()  # or packing a weight would bind this process to one processor
        with choosing(choices):
            return kernel_graph.build(self.mod, self.target, fuse=self.fuse)

    def extracted(self, choices: Choices) -> Extracted:
        """All tasks, the graph built with some choices."""
        given = self.mod if self.is_open or self.calls_kernels else self.graph(choices)
        threads.before_compiling()
        return extract_tasks(given, self.target, sizes=self.sizes, fuse=self.fuse)

    def chosen(self, found: Extracted) -> Extracted:
        """The tasks whose names the pattern fits.

        Raises
        ------
        TuneError
            There are none.
        """
        pattern = self.kernels
        tasks = tuple(t for t in found.tasks if pattern is None or fnmatch.fnmatchcase(t.name, pattern))
        if tasks:
            return attrs.evolve(found, tasks=tasks)
        if found.tasks:
            names = ", ".join(task.name for task in found.tasks)
            raise TuneError(
                f"No kernel is called {pattern!r}.",
                where="kernels, --kernels",
                need="a pattern that fits one of " + names,
                remedy="name one of them, or use * and ?",
            )
        why = "; ".join(f"{name}: {said}" for name, said in found.left.items())
        raise TuneError(
            "The model has no kernel to tune.",
            limit=why or f"all of its {found.library} operators are the library's",
            remedy="there is nothing to do: compile it as it is",
        )

    def state(self, found: Extracted, key: Key) -> TuningState:
        """What is known of tasks, with the searches of `search` and the roofline of `analytic`."""
        return TuningState(
            found.tasks,
            self.database,
            lambda task: TaskSearch(task, design_spaces(task.func, task.target), self.learned, self.seed),
            cost_model=self.learned,
            modelled=registry.place_of(self.target).name == MODEL,
            key=key,
        )


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
                remedy="start some with `uir tune-server`",
            )
    return key
