# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.tune.tune``: a model and a budget in, schedules in a database out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ..target import registry
from .budget import Budget
from .cost_model import CostModel
from .database import ScheduleDatabase
from .job import DEFAULTS, Settings
from .key import expected
from .measure import LocalMeasurer, Measurer
from .models import chosen, cost_model_of, extracted, key_for, knowledge_of, resolved
from .places import require
from .session import Session, Watcher
from .summary import Summary, summarise

if TYPE_CHECKING:
    from .batch import Batch

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
    folder = ScheduleDatabase(database).to_write()
    watch = watcher or Watcher()
    if measurer is None:
        require(resolved(target, device))  # before a model is read that nobody can measure
    watch.phase("reading the model")
    found, label = extracted(model, target, shapes=shapes, name=name, device=device, fuse=fuse)
    found = chosen(found, kernels)
    learned, save = cost_model_of(cost_model, seed)
    watch.phase("workers start")
    where = found.tasks[0].target
    used: Measurer = measurer if measurer is not None else LocalMeasurer.for_target(where)
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
    return summarise(known, label, found, used.name, session.seconds, session.ended, session.interrupt.signal)


def export_candidates(
    model: Any,
    target: Any,
    folder: str | os.PathLike[str],
    *,
    database: str | os.PathLike[str],
    count: int | None = None,
    kernels: str | None = None,
    cost_model: CostModel | str | os.PathLike[str] | None = None,
    seed: int = 0,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    device: str | None = None,
    fuse: bool = True,
    settings: Settings = DEFAULTS,
    watcher: Watcher | None = None,
) -> Batch:
    """Write the candidates that come next for a machine that no network reaches; see `tune`.

    Parameters
    ----------
    folder : str or Path
        To be written; it must not exist, or be empty.
    count : int, optional
        Candidates; default: `carry.COUNT`.
    device : str, optional
        Where they are to run; default: the device of the target, whether this machine has one or not.

    Raises
    ------
    TuneError
        Nothing to tune, or nothing left to try.
    ExportError, ToolchainError
        The folder cannot be written; what compiles for the device is missing.
    """
    from . import carry

    watch, folder_of_database = watcher or Watcher(), ScheduleDatabase(database).to_write()
    watch.phase("reading the model")
    place = device or away(target)
    found, _ = extracted(model, target, shapes=shapes, device=place, fuse=fuse)
    found = chosen(found, kernels)
    learned, _ = cost_model_of(cost_model, seed)
    key = carry.key_in(folder_of_database, expected(found.tasks[0].target))
    known = knowledge_of(found, folder_of_database, learned, seed, key)
    wanted = carry.COUNT if count is None else count
    return carry.export(known, folder, wanted, seed=seed, settings=settings, phase=watch.phase)


def import_measured(
    model: Any,
    target: Any,
    folder: str | os.PathLike[str],
    *,
    database: str | os.PathLike[str],
    kernels: str | None = None,
    cost_model: CostModel | str | os.PathLike[str] | None = None,
    seed: int = 0,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    name: str | None = None,
    device: str | None = None,
    fuse: bool = True,
    watcher: Watcher | None = None,
) -> Summary:
    """Take up what was measured of a folder of `export_candidates`; see there.

    Raises
    ------
    ArtifactError
        The folder is no batch, or it was changed.
    TuneError
        Nothing of it was measured yet, or it is of another model.
    """
    from . import carry

    start, watch = time.monotonic(), watcher or Watcher()
    batch = carry.load(folder)
    watch.phase("reading the model")
    place = device or away(target)
    found, label = extracted(model, target, shapes=shapes, name=name, device=place, fuse=fuse)
    found = chosen(found, kernels)
    learned, save = cost_model_of(cost_model, seed)
    known = knowledge_of(found, ScheduleDatabase(database).to_write(), learned, seed, batch.key)
    watch.phase("taking up results")
    new = carry.take_up(known, batch)
    save()
    machine = str(batch.machine.get("name", "another machine"))
    said = f"{new} new results taken up" + (f", {batch.remaining} to come" if batch.remaining else "")
    return summarise(known, label, found, machine, time.monotonic() - start, said)


def away(target: Any) -> str:
    """The place that a target is for first of all, whether this machine has it or not."""
    if isinstance(target, str):
        return str(registry.get(target.partition(":")[0]).places[0].name)
    return str(registry.place_of(registry.resolve(target).target).name)
