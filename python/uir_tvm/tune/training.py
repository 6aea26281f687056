# SPDX-License-Identifier: Apache-2.0
"""What a cost model can learn from a database of schedules: their iGraphs and times, by task."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from .. import hardware
from ..errors import UirError
from ..extract import extract
from ..igraph import HardwareModel, IGraph
from ..optimize import completed
from ..schedule.size_points import SizePoint
from ..target import registry
from .cost_model import CostModel
from .key import Key, figures_of
from .records import Entry
from .representative_graphs import graph_at

log = logging.getLogger(__name__)


def train(model: CostModel, entries: Iterable[Entry]) -> int:
    """Let a cost model learn from records, of any number of tasks and targets.

    Parameters
    ----------
    model : CostModel
    entries : iterable of Entry
        Such as `ScheduleDatabase.entries`.

    Returns
    -------
    int
        How many it has learned from: a record of a hardware model that has other figures today, or whose
        trace does not apply any more, is passed over.
    """
    found = by_task(entries)
    for (origin, _), rows in found.items():
        model.update(origin, [graph for graph, _ in rows], [seconds for _, seconds in rows])
    return sum(map(len, found.values()))


def by_task(entries: Iterable[Entry]) -> dict[tuple[str, str], list[tuple[IGraph, float]]]:
    """iGraphs and mean seconds of records by kernel (`tuned_origin`) and key (its folder); see `train`.

    A kernel with open sizes counts at each of its representative ones, as a kernel of its own.
    """
    models: dict[str, HardwareModel | None] = {}
    found: dict[tuple[str, str], list[tuple[IGraph, float]]] = {}
    for entry in entries:
        folder = entry.key.folder
        if folder not in models:
            models[folder] = _hardware(entry.key)
        hw = models[folder]
        if hw is None:
            continue
        try:
            graph = completed(extract(entry.schedule().mod["main"], hw, name=entry.name), check=False)
        except UirError as error:
            log.info("nothing is learned from a schedule of %s: %s", entry.name, str(error).splitlines()[0])
            continue
        if not graph.sizes:
            found.setdefault((entry.origin, folder), []).append((graph, entry.mean))
        for time in entry.by_size:
            task = f"{entry.origin} {list(time.sizes.values())}", folder
            found.setdefault(task, []).append((graph_at(graph, SizePoint(time.sizes)), time.seconds))
    return found


def _hardware(key: Key) -> HardwareModel | None:
    """The hardware model of a key; None where there is none with the figures that its times are of."""
    try:
        hw = hardware.get(key.hardware, registry.get(key.target).kind)
    except UirError as error:
        log.info("nothing is learned from %s: %s", key.folder, error.what)
        return None
    if figures_of(hw) != key.model:
        log.info("nothing is learned from %s: figures of %s have changed", key.folder, key.hardware)
        return None
    return hw
