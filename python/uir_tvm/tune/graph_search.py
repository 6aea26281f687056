# SPDX-License-Identifier: Apache-2.0
"""Which options of a model's kernel graph are faster: how products run, and what shares a kernel.

For every site of the graph (`uir_tvm.kernel_graph.choices`) that has options the model is built with each of
them; where it differs, the two parts are timed beside each other, in turns, amid other work.  What seems
faster is compared once more, for longer.  At the end the whole model is timed with and without these options,
all of them first, then those of each half where that is not faster, then without each one: what does not make
it faster goes back.  Every site is in the database then, the default being best included, so that nothing is
measured twice.
"""

from __future__ import annotations

import logging
import math
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from ..errors import UirError
from ..explain.tuning_summary import SiteResult
from ..kernel_graph import KernelGraph
from ..kernel_graph.choices import DEFAULT, Choices
from ..kernel_graph.graph_difference import Difference, difference
from ..target import registry
from .database import ScheduleDatabase
from .job import Settings
from .key import Key, key_of
from .measure import LocalMeasurer, Measurer
from .segments import Segment, write

if TYPE_CHECKING:
    from .models import Subject

log = logging.getLogger(__name__)

#: By so much an option must be faster to be compared again, and then to be taken.
PROMISING, GAIN = 0.03, 0.02
#: Samples of a first comparison, and of the one that decides.
FIRST, DECIDING = 3, 11
#: Seconds that building and timing the whole model may take at least: it has all of its weights to pack.
WHOLE_SECONDS = 300.0


def choices_of(database: ScheduleDatabase, key: Key) -> Choices:
    """The choices that a database has for graphs of a key.

    Raises
    ------
    DatabaseError
        It is damaged.
    """
    rows = database.records(key).sites().values()
    return Choices({str(row["site"]): str(row["chosen"]) for row in rows if row["chosen"]})


def why_not(subject: Subject, measurer: Measurer) -> str:
    """Why nobody measures the sites of a model's graph; empty where they are measured."""
    if subject.is_open:
        return "the model leaves sizes open, and products are chosen by numbers: tune it at fixed sizes"
    if subject.calls_kernels:
        return "it is given as kernels"
    if registry.place_of(subject.target).device != "cpu":
        return "only those of this machine's own processor are timed, as its library runs here"
    if not isinstance(measurer, LocalMeasurer):
        return (
            "servers measure kernels alone: tune on such a machine itself, and `uir db merge` the databases"
        )
    return ""


class GraphSearch:
    """Measures the sites of a model's graph.

    Parameters
    ----------
    subject : Subject
        A model as operators.
    measurer : LocalMeasurer
    settings : Settings

    Attributes
    ----------
    rows : dict of str to SiteResult
        By site: those of the model alone.
    comparisons : int
        That were made.
    whole : (float, float), optional
        Seconds of the whole model before and with all options that are faster by themselves, in turns.
    """

    def __init__(self, subject: Subject, measurer: LocalMeasurer, settings: Settings) -> None:
        self.subject, self.measurer, self.settings = subject, measurer, settings
        key = key_of(subject.target)
        self.records = subject.database.records(key)
        self.rows: dict[str, SiteResult] = {}
        self.comparisons = 0
        self.whole: tuple[float, float] | None = None
        self._chosen = choices_of(subject.database, key).chosen
        self._folder = pathlib.Path()

    def run(
        self,
        on_site: Callable[[SiteResult], None],
        over: Callable[[], bool],
        too_late: Callable[[], bool] | None = None,
    ) -> None:
        """Measure what is not known yet.

        Parameters
        ----------
        on_site : callable
            Is told of each site that was measured.
        over : callable
            Asked before each comparison: whether there is no time left.
        too_late : callable, optional
            The same for comparisons of the whole model, at the end; default: `over`.

        Raises
        ------
        DatabaseError
            The database cannot be read or written.
        """
        known = {site: SiteResult.from_json(row) for site, row in self.records.sites().items()}
        asked, before = Choices(self._chosen), dict(self._chosen)
        graph = self.subject.graph(asked)
        self.rows = {site: known[site] for site in asked.sites if site in known}
        with tempfile.TemporaryDirectory(prefix="uir_graph_") as folder:
            self._folder = pathlib.Path(folder)
            for site, options in asked.sites.items():
                if site in known:
                    continue
                row = self._measured(site, options, graph, over)
                if row is None:
                    break
                self.rows[site] = row
                on_site(row)
                if row.chosen:
                    self._chosen[site] = row.chosen
                    graph = self.subject.graph(Choices(self._chosen))
                else:
                    self.records.add_sites([row.to_json()])
            if self._chosen != before:
                self._settle(before, too_late or over)

    def _settle(self, before: Mapping[str, str], over: Callable[[], bool]) -> None:
        """Keep the new choices with which the whole model is faster, on a busy machine too."""
        new = {site: self._chosen[site] for site in self._chosen if site not in before}
        order = sorted(new, key=lambda site: self.rows[site].saved)
        self._chosen = dict(before)
        undecided = self._keep(order, new, over)
        for site in [site for site in order if site in self._chosen and len(self._chosen) > len(before) + 1]:
            if over():
                break
            rest = {one: option for one, option in self._chosen.items() if one != site}
            default, other, _ = self._whole(f"without {site}", self._chosen, rest)
            if other < default * (1 - GAIN):
                self._chosen = rest
        for site in order:
            row = self.rows[site]
            if site not in self._chosen:
                why = undecided.get(site, "faster by itself, but the whole model is not")
                row = attrs.evolve(row, chosen=DEFAULT, failed={**row.failed, row.chosen: why})
                self.rows[site] = row
            if site not in undecided:
                self.records.add_sites([row.to_json()])

    def _keep(self, sites: Sequence[str], new: Mapping[str, str], over: Callable[[], bool]) -> dict[str, str]:
        """Take sites that make the whole model faster: all of them, or of each half what does.

        Returns
        -------
        dict of str to str
            Sites that could not be compared, and why; they are measured again another time.
        """
        every = len(sites) == len(new)
        name = "all choices" if every else f"with {', '.join(sites)}"
        taken = {**self._chosen, **{site: new[site] for site in sites}}
        default, other, failed = self._whole(name, self._chosen, taken)
        if failed:
            return dict.fromkeys(sites, f"the whole model could not be timed: {failed}")
        if every:
            self.whole = default, other
        if other < default:
            self._chosen = taken
            return {}
        if len(sites) == 1:
            return {}
        if over():
            return dict.fromkeys(sites, "no time was left to try it in the whole model by itself")
        half = len(sites) // 2
        larger = self._keep(sites[half:], new, over)
        return {**larger, **self._keep(sites[:half], new, over)}

    def _whole(
        self, name: str, default: Mapping[str, str], other: Mapping[str, str]
    ) -> tuple[float, float, str]:
        """The whole model by two choices; see `_compared`."""
        graphs = self.subject.graph(Choices(default)), self.subject.graph(Choices(other))
        found = self._compared(f"the whole model: {name}", graphs, DECIDING, WHOLE_SECONDS)
        if found[2]:
            log.warning("the whole model, %s: %s", name, found[2])
        return found

    def _compared(
        self, name: str, graphs: tuple[KernelGraph, KernelGraph], repeats: int, least: float = 0.0
    ) -> tuple[float, float, str]:
        """Seconds of two graphs in turns, the default first, or why there are none.

        Each may take the settings' time, or more if that is less.
        """
        self.comparisons += 1
        limit = max(self.settings.timeout_seconds, least)
        settings = attrs.evolve(self.settings, repeats=repeats, timeout_seconds=limit)
        where, seed = self.subject.target, self.subject.seed
        place, target = registry.place_of(where).name, registry.resolve(where).name
        modules = [write(graph, self._folder) for graph in graphs]
        default, other = self.measurer.confirm(
            [Segment(name, module, target, place, seed, settings) for module in modules]
        )
        bad = next((one.said or one.outcome for one in (default, other) if not one.ok), "")
        if bad:
            log.debug("%s: %s", name, bad)
        return default.median, other.median, bad

    def _measured(
        self, site: str, options: tuple[str, ...], graph: KernelGraph, over: Callable[[], bool]
    ) -> SiteResult | None:
        """What is found of a site; None where time is up before that."""
        found: dict[str, tuple[float, float]] = {}
        failed: dict[str, str] = {}
        parts: dict[str, Difference] = {}

        def compare(option: str, repeats: int) -> None:
            graphs = parts[option].default, parts[option].other
            default, other, why = self._compared(f"{site}: {option}", graphs, repeats)
            found[option] = default, other
            if why:
                del found[option]
                failed[option] = why

        for option in options:
            if over():
                return None
            try:
                part = difference(graph, self.subject.graph(Choices({**self._chosen, site: option})))
            except UirError as error:
                failed[option] = error.what
                continue
            if part is not None:
                parts[option] = part
                compare(option, FIRST)
        chosen = DEFAULT
        promising = [name for name, (default, other) in found.items() if other < default * (1 - PROMISING)]
        for option in sorted(promising, key=lambda name: found[name][1] / found[name][0]):
            if over():
                return None
            compare(option, DECIDING)
            default, other = found.get(option, (1.0, math.inf))
            if other < default * (1 - GAIN):
                chosen = option
                break
        count = max((part.count for part in parts.values()), default=0)
        return SiteResult(site, chosen, count, found, failed)
