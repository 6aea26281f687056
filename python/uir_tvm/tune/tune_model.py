# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.tune.tune``: a model and a budget in, schedules in a database out."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import tvm

from .. import environment
from ..explain.tuning_summary import SiteResult, Summary
from ..interrupt import Interruptible
from ..kernel_graph.choices import Choices
from ..options import DEFAULT_TARGET
from ..runtime.timed_places import require
from ..target import registry
from ..time_text import time_text
from .budget import Budget
from .cost_model import CostModel
from .graph_search import GraphSearch, choices_of, why_not
from .job import DEFAULTS, Settings
from .key import key_of
from .measure import LocalMeasurer, Measurer
from .models import Subject, key_for
from .session import Session, Watcher
from .summary import summarise

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
    sizes: Sequence[Any] | None = None,
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
    sizes : sequence, optional
        Representative sizes of a model that leaves sizes open, with weights: ``["n=1,s=128:0.7",
        ({"n": 8, "s": 512}, 0.3)]``. Default: a list by the sizes' ranges
        (`schedule.size_points.default_points`).
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
        Neither a kernel nor a library's operator to tune; a budget, or representative sizes, that are none.
    SizeError
        Representative sizes that the model does not take.
    DatabaseError
        The database cannot be read or written.
    KeyboardInterrupt
        Ctrl-C was pressed twice; after one, a summary says so.
    """
    started = time.monotonic() if started is None else started
    budget = Budget.of(time_budget, trials)
    if budget.seconds is not None:
        budget = attrs.evolve(budget, seconds=max(budget.seconds - CLOSING, 0.5 * budget.seconds))
    where = resolved(target, device)
    if measurer is None:
        require(where)  # before a model is read that nobody can measure
    subject = Subject(model, where, database, kernels, cost_model, seed, shapes, name, fuse, sizes, watcher)
    used: Measurer = measurer if measurer is not None else LocalMeasurer.for_target(where)
    try:
        interrupt, sites = Interruptible(), None
        no_sites = why_not(subject, used)
        if isinstance(used, LocalMeasurer) and not no_sites and kernels is None and fuse:
            with interrupt:
                sites = _tune_graph(subject, used, settings, budget, started, interrupt)
        choices = choices_of(subject.database, key_of(where)) if measurer is None else Choices()
        found = subject.extracted(choices)
        if sites is not None and not found.tasks:
            known, seconds = subject.state(found, key_of(where)), time.monotonic() - started
            ended = "interrupted" if interrupt.signal else "the model has no kernel of ours"
        else:
            found = subject.chosen(found)
            if no_sites:
                left = {**found.left, "the graph (library, threads, fusion)": no_sites}
                found = attrs.evolve(found, left=left)
            subject.watcher.phase("workers start")
            known = subject.state(found, key_for(measurer, found.tasks[0], settings))
            session = Session(
                known,
                used,
                budget,
                seed=seed,
                settings=settings,
                watcher=subject.watcher,
                started=started,
                after_batch=subject.save,
                interrupt=interrupt,
            )
            session.run()
            seconds, ended = session.seconds, session.ended
    finally:
        if used is not measurer:
            used.close()
    subject.save()
    signal = interrupt.signal
    return summarise(known, subject.label, found, used.name, seconds, ended, signal, sites or (), where)


def _tune_graph(
    subject: Subject,
    measurer: LocalMeasurer,
    settings: Settings,
    budget: Budget,
    started: float,
    interrupt: Interruptible,
) -> tuple[SiteResult, ...]:
    """What is found of the sites of a model's graph, in its share of the budget."""
    search, watch = GraphSearch(subject, measurer, settings), subject.watcher
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


def resolved(target: Any, device: str | None) -> tvm.target.Target:
    """A target, at the place where its kernels run.

    Raises
    ------
    TargetError
        An unknown target, hardware model or place.
    """
    return registry.resolve(target, environment.device() if device is None else device).target


def away(target: Any) -> str:
    """The place that a target is for first of all, whether this machine has it or not."""
    if isinstance(target, str):
        return str(registry.get(target.partition(":")[0]).places[0].name)
    return str(registry.place_of(registry.resolve(target).target).name)
