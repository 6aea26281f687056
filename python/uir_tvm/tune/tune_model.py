# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.tune.tune``: a model and a budget in, schedules in a database out."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import tvm

from ..explain.tuning_summary import SiteResult, Summary
from ..kernel_graph.choices import Choices
from ..options import DEFAULT_TARGET
from ..target import registry
from ..time_text import time_text
from .budget import Budget
from .cost_model import CostModel
from .database import ScheduleDatabase
from .graph_search import GraphSearch, choices_of, why_not
from .interrupt import Interruptible
from .job import DEFAULTS, Settings
from .key import expected, key_of
from .measure import LocalMeasurer, Measurer
from .models import chosen, cost_model_of, extracted, imported, key_for, resolved, state_for
from .session import Session, Watcher
from .summary import summarise, without_tasks
from .timed_places import require

if TYPE_CHECKING:
    from .batch import Batch

log = logging.getLogger(__name__)

#: What a run takes beside tuning at its end: the summary, workers that end.
CLOSING = 1.0
#: Share of the time for the options of the graph, and of that for comparing the whole model at the end.
GRAPH_SHARE, WHOLE_SHARE = 0.5, 0.25
#: Programs at work beside this one, above the processors' number, with which threads wait for each other.
BUSY = 1.0


def tune(
    model: Any,
    target: Any = DEFAULT_TARGET,
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
        Neither a kernel nor a library's operator to tune, or a budget that is none.
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
    where = resolved(target, device)
    if measurer is None:
        require(where)  # before a model is read that nobody can measure
    watch.phase("reading the model")
    mod, label = imported(model, shapes, name)
    used: Measurer = measurer if measurer is not None else LocalMeasurer.for_target(where)
    try:
        interrupt, sites = Interruptible(), None
        no_sites = why_not(mod, where, used)
        if isinstance(used, LocalMeasurer) and not no_sites and kernels is None and fuse:
            with interrupt:
                sites = _tune_graph(
                    mod, where, folder, used, settings, seed, budget, watch, started, interrupt
                )
        choices = choices_of(folder, key_of(where)) if measurer is None else Choices()
        found = extracted(mod, where, choices, fuse)
        if sites is not None and not found.tasks:
            return without_tasks(
                label, where, folder, used.name, time.monotonic() - started, sites, interrupt
            )
        found = chosen(found, kernels)
        if no_sites:
            found = attrs.evolve(found, left={**found.left, "the graph (library, threads, fusion)": no_sites})
        learned, save = cost_model_of(cost_model, seed)
        watch.phase("workers start")
        known = state_for(found, folder, learned, seed, key_for(measurer, found.tasks[0], settings))
        session = Session(
            known,
            used,
            budget,
            seed=seed,
            settings=settings,
            watcher=watch,
            started=started,
            after_batch=save,
            interrupt=interrupt,
        )
        session.run()
    finally:
        if used is not measurer:
            used.close()
    save()
    signal = interrupt.signal
    return summarise(known, label, found, used.name, session.seconds, session.ended, signal, sites or ())


def _tune_graph(
    mod: Any,
    where: tvm.target.Target,
    database: ScheduleDatabase,
    measurer: LocalMeasurer,
    settings: Settings,
    seed: int,
    budget: Budget,
    watch: Watcher,
    started: float,
    interrupt: Interruptible,
) -> tuple[SiteResult, ...]:
    """What is found of the sites of a model's graph, in its share of the budget."""
    search = GraphSearch(mod, where, database, key_of(where), measurer, settings, seed=seed)
    seconds = math.inf if budget.seconds is None else GRAPH_SHARE * budget.seconds
    most = math.inf if budget.trials is None else budget.trials

    def over(share: float = 1 - WHOLE_SHARE) -> bool:
        late = time.monotonic() > started + share * seconds
        return bool(interrupt.signal) or late or search.comparisons >= most

    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors + BUSY:
        log.warning("this machine is busy (load %.1f): what is faster now may not be when it is not", load)
    watch.phase("how products run, and what shares a kernel")
    search.run(watch.site, over, lambda: over(1.0))
    if search.whole is not None:
        before, after = search.whole
        watch.phase(f"the whole model: {time_text(before)} before, {time_text(after)} with these options")
    return tuple(search.rows.values())


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
        Candidates; default: `offline.COUNT`.
    device : str, optional
        Where they are to run; default: the device of the target, whether this machine has one or not.

    Raises
    ------
    TuneError
        Nothing to tune, or nothing left to try.
    ExportError, ToolchainError
        The folder cannot be written; what compiles for the device is missing.
    """
    from . import offline

    watch, folder_of_database = watcher or Watcher(), ScheduleDatabase(database).to_write()
    watch.phase("reading the model")
    where = resolved(target, device or away(target))
    found = chosen(extracted(imported(model, shapes)[0], where, Choices(), fuse), kernels)
    learned, _ = cost_model_of(cost_model, seed)
    key = offline.key_in(folder_of_database, expected(found.tasks[0].target))
    known = state_for(found, folder_of_database, learned, seed, key)
    wanted = offline.COUNT if count is None else count
    return offline.export(known, folder, wanted, seed=seed, settings=settings, phase=watch.phase)


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
    from . import offline

    start, watch = time.monotonic(), watcher or Watcher()
    batch = offline.load(folder)
    watch.phase("reading the model")
    mod, label = imported(model, shapes, name)
    found = chosen(extracted(mod, resolved(target, device or away(target)), Choices(), fuse), kernels)
    learned, save = cost_model_of(cost_model, seed)
    known = state_for(found, ScheduleDatabase(database).to_write(), learned, seed, batch.key)
    watch.phase("taking up results")
    new = offline.take_up(known, batch)
    save()
    machine = str(batch.machine.get("name", "another machine"))
    said = f"{new} new results taken up" + (f", {batch.remaining} to come" if batch.remaining else "")
    return summarise(known, label, found, machine, time.monotonic() - start, said)


def away(target: Any) -> str:
    """The place that a target is for first of all, whether this machine has it or not."""
    if isinstance(target, str):
        return str(registry.get(target.partition(":")[0]).places[0].name)
    return str(registry.place_of(registry.resolve(target).target).name)
