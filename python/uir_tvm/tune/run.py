# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.tune.tune``: a model and a budget in, schedules in a database out."""

from __future__ import annotations

import fnmatch
import os
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import tvm

from ..errors import DeviceError, TuneError
from ..kernel_graph import KernelGraph
from .budget import Budget
from .cost_model import CostModel
from .database import ScheduleDatabase
from .job import DEFAULTS, Job, Settings
from .key import Key, key_of
from .knowledge import Knowledge
from .lane import Lane
from .measure import LocalMeasurer, Measurer
from .places import require
from .session import Session, Watcher
from .summary import Row, Summary
from .task import Extracted, Task, tasks_of

#: What a run takes beside tuning at its end: the summary, workers that end.
CLOSING = 1.0


def tune(
    model: Any,
    target: Any = "uir-cpu",
    *,
    database: str | os.PathLike[str],
    time_budget: str | float | None = None,
    trials: int | None = None,
    kernels: str | None = None,
    measurer: Measurer | None = None,
    cost_model: CostModel | str | os.PathLike[str] | None = None,
    seed: int = 0,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str | None = None,
    device: str | None = None,
    fuse: bool = True,
    settings: Settings = DEFAULTS,
    watcher: Watcher | None = None,
    started: float | None = None,
) -> Summary:
    """Search for faster schedules of a model's kernels, and keep them in a database.

    What is found is used by ``uir_tvm.compile(model, target, database=DIR)``.  A run that is ended, by Ctrl-C
    or in whatever way, is continued by the same call: nothing is measured twice.

    Parameters
    ----------
    model
        Whatever `uir_tvm.compile` takes, or a `KernelGraph` of it.
    target : str or Target
        A uir target.
    database : str or Path
        The folder of the database; made if need be.
    time_budget : str or float, optional
        Of this call, all included: ``"90s"``, ``"10m"``, ``"1h30m"`` or seconds. Default: ten minutes where
        no number of trials is given, else none.
    trials : int, optional
        Candidates to measure, those of earlier calls included.
    kernels : str, optional
        A pattern (``softmax*``): only kernels of such a name.
    measurer : Measurer, optional
        Who measures; default: this machine (`LocalMeasurer`). One that is given is not closed.
    cost_model : CostModel, str or Path, optional
        One that knows something already, or the file that it is kept in.
    seed : int
        Of the search and of the inputs.
    shapes, name, device, fuse
        As `uir_tvm.compile` and `CompileOptions` take them.
    settings : Settings
        How candidates are measured.
    watcher : Watcher, optional
        Is told of what happens.
    started : float, optional
        When the time budget began (`time.monotonic`); default: now.

    Returns
    -------
    Summary

    Raises
    ------
    TuneError
        Nothing to tune, or a budget that is none.
    DatabaseError
        The database cannot be read or written.
    KeyboardInterrupt
        Ctrl-C was pressed twice; after one, a summary says so.
    """
    started = time.monotonic() if started is None else started
    budget = Budget.of(time_budget, trials)
    if budget.seconds is not None:
        budget = attrs.evolve(budget, seconds=max(budget.seconds - CLOSING, 0.5 * budget.seconds))
    folder = ScheduleDatabase(database)
    watch = watcher or Watcher()
    watch.phase("reading the model")
    found, label = extracted(model, target, shapes=shapes, name=name, device=device, fuse=fuse)
    found = chosen(found, kernels)
    learned, save = _cost_model(cost_model, seed)
    watch.phase("workers start")
    where = found.tasks[0].target
    used: Measurer = measurer if measurer is not None else _local(where)
    known = knowledge_of(found, folder, learned, seed, key_for(measurer, found.tasks[0], settings))
    session = Session(
        known,
        used,
        budget,
        seed=seed,
        settings=settings,
        watcher=watch,
        started=started,
        after_batch=save,
    )
    try:
        session.run()
    finally:
        if used is not measurer:
            used.close()
    save()
    return summarise(session, label, found)


def knowledge_of(
    found: Extracted, database: ScheduleDatabase, model: CostModel, seed: int, key: Key | None = None
) -> Knowledge:
    """What is known of tasks, with the searches of `search` and the roofline of `analytic`."""
    return Knowledge(
        found.tasks,
        database,
        lambda task: _search_of(task, model, seed),
        bound_of=_bound_of,
        cost_model=model,
        modelled=is_modelled(found.tasks),
        key=key,
    )


def extracted(
    model: Any,
    target: Any,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str | None = None,
    device: str | None = None,
    fuse: bool = True,
) -> tuple[Extracted, str]:
    """The tasks of a model, and the model's name.

    Raises
    ------
    FrontendError
        The model cannot be imported.
    TargetError
        An unknown target, hardware model or place.
    """
    from .. import autoload, kernel_graph, options
    from ..api import import_model, model_name
    from ..target import registry

    autoload.register()
    place = options.device() if device is None else device
    where = registry.resolve(target, place).target
    label = name or model_name(model)
    if isinstance(model, KernelGraph):
        return tasks_of(model, where), label
    mod = import_model(model, shapes)
    if kernel_graph.calls_kernels(mod):
        return tasks_of(mod, where), label
    return tasks_of(kernel_graph.build(mod, where, fuse=fuse), where), label


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
    from ..target import registry
    from ..target.place import MODEL

    return bool(registry.place_of(tasks[0].target).name == MODEL)


def _local(target: tvm.target.Target) -> LocalMeasurer:
    """This machine.

    Raises
    ------
    DeviceError
        Nothing here can time kernels of the target.
    """
    require(target)
    return LocalMeasurer.for_target(target)


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


def _cost_model(
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


def _search_of(task: Task, model: CostModel, seed: int) -> Any:
    from .search import TaskSearch
    from .spaces import design_spaces

    return TaskSearch(task, design_spaces(task.func, task.target), model, seed)


def _bound_of(search: Any) -> float:
    """Seconds of a task's roofline; 0 where they are not known."""
    from .analytic import distance

    if search.default is None:
        return 0.0
    return distance(search.default.graph, 1.0) or 0.0


def summarise(session: Session, label: str, found: Extracted) -> Summary:
    """What a session brought."""
    from ..target import registry

    target = found.tasks[0].target
    lanes = sorted(session.known.lanes.values(), key=lambda lane: -_before(lane))
    total = sum(map(_before, lanes))
    return Summary(
        model=label,
        target=registry.resolve(target).name,
        place=registry.place_of(target).name,
        measurer=session.measurer.name,
        database=str(session.known.database.folder),
        rows=tuple(_row(session, lane, total) for lane in lanes),
        modelled=session.known.modelled,
        seconds=session.seconds,
        trials=session.known.trials,
        resumed=session.known.resumed,
        ended=session.ended,
        signal=session.interrupt.signal,
        left=found.left,
        library=found.library,
    )


def _before(lane: Lane) -> float:
    known = lane.default is not None and lane.default.ok
    return lane.task.weight * lane.state.default if known else 0.0


def _row(session: Session, lane: Lane, total: float) -> Row:
    state, default, best = lane.state, None, None
    if lane.default is not None and lane.default.ok:
        default = best = state.default
    if lane.kept is not None:
        default, best = lane.kept.seconds
    waiting = session.known.pending(lane)
    # on the scale of the comparison that the other times are of
    pending = None
    if waiting is not None and default:
        pending = lane.tried[waiting.digest][1] * default / state.default
    near = state.bound / best if best and 0 < state.bound <= best else None
    return Row(
        kernel=lane.task.name,
        origin=lane.task.origin,
        launches=lane.task.weight,
        share_before=_before(lane) / total if total else 0.0,
        default=default,
        best=best,
        pending=pending,
        of_roofline=near,
        trials=state.trials,
        rejected={k: n for k, n in state.outcomes.items() if k != "ok"},
        stopped=state.stopped,
        reports=tuple(lane.reports),
    )
