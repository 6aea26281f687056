# SPDX-License-Identifier: Apache-2.0
"""Which options of a model's kernel graph are faster: how products run, and what shares a kernel.

For every site of the graph (`uir_tvm.kernel_graph.choices`) that has options the model is built with each of
them; where it differs, the two parts are timed beside each other, in turns, amid other work.  What seems
faster is compared once more, for longer.  At the end the whole model is timed with and without all of that:
what does not make it faster is not taken.  Every site is in the database then, the default being best
included, so that nothing is measured twice.
"""

from __future__ import annotations

import logging
import math
import pathlib
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence

import attrs
import tvm

from .. import kernel_graph, threads
from ..errors import UirError
from ..explain.tuned import SiteResult
from ..kernel_graph import KernelGraph
from ..kernel_graph.choices import DEFAULT, Choices, choosing
from ..target import registry
from .database import ScheduleDatabase
from .job import Result, Settings
from .key import Key
from .measure import LocalMeasurer
from .segments import Difference, Segment, difference, write

log = logging.getLogger(__name__)

#: By so much an option must be faster to be compared again, and then to be taken.
PROMISING, GAIN = 0.03, 0.02
#: Samples of a first comparison, and of the one that decides.
FIRST, DECIDING = 3, 11


def choices_of(database: ScheduleDatabase, key: Key) -> Choices:
    """The choices that a database has for graphs of a key.

    Raises
    ------
    DatabaseError
        It is damaged.
    """
    rows = database.records(key).sites().values()
    return Choices({str(row["site"]): str(row["chosen"]) for row in rows if row["chosen"]})


def tunable(target: tvm.target.Target) -> bool:
    """Whether graphs for a target have sites that this machine can time: those of its own processor."""
    return bool(registry.place_of(target).device == "cpu")


class GraphSearch:
    """Measures the sites of a model's graph.

    Parameters
    ----------
    mod : IRModule
        The model as operators.
    target : Target
    database : ScheduleDatabase
    key : Key
        What times are true of.
    measurer : LocalMeasurer
    settings : Settings
    seed : int
        Of the inputs.
    fuse : bool
        As `CompileOptions.fuse`.

    Attributes
    ----------
    rows : dict of str to SiteResult
        By site: those of the model alone.
    comparisons : int
        That were made.
    whole : (float, float), optional
        Seconds of the whole model before and with the choices of this run, in turns.
    """

    def __init__(
        self,
        mod: tvm.IRModule,
        target: tvm.target.Target,
        database: ScheduleDatabase,
        key: Key,
        measurer: LocalMeasurer,
        settings: Settings,
        *,
        seed: int = 0,
        fuse: bool = True,
    ) -> None:
        self.mod, self.target, self.fuse, self.seed = mod, target, fuse, seed
        self.records = database.records(key)
        self.measurer, self.settings = measurer, settings
        self.rows: dict[str, SiteResult] = {}
        self.comparisons = 0
        self.whole: tuple[float, float] | None = None
        self._chosen = choices_of(database, key).chosen

    def graph(self, choices: Choices) -> KernelGraph:
        """The model's graph under some choices."""
        threads.before_compiling()  # or packing a weight would bind this process to one processor
        with choosing(choices):
            return kernel_graph.build(self.mod, self.target, fuse=self.fuse)

    def run(self, on_site: Callable[[SiteResult], None], over: Callable[[], bool]) -> None:
        """Measure what is not known yet.

        Parameters
        ----------
        on_site : callable
            Is told of each site that was measured.
        over : callable
            Asked before each comparison: whether there is no time left.

        Raises
        ------
        DatabaseError
            The database cannot be read or written.
        """
        known = {site: SiteResult.from_json(row) for site, row in self.records.sites().items()}
        asked, before = Choices(self._chosen), dict(self._chosen)
        graph = self.graph(asked)
        self.rows = {site: known[site] for site in asked.sites if site in known}
        with tempfile.TemporaryDirectory(prefix="uir_graph_") as folder:
            for site, options in asked.sites.items():
                if site in known:
                    continue
                row = self._measured(site, options, graph, pathlib.Path(folder), over)
                if row is None:
                    break
                self.rows[site] = row
                on_site(row)
                if row.chosen:
                    self._chosen[site] = row.chosen
                    graph = self.graph(Choices(self._chosen))
                else:
                    self.records.add_sites([row.to_json()])
            if self._chosen != before:
                self._settle(before, pathlib.Path(folder))

    def _settle(self, before: Mapping[str, str], folder: pathlib.Path) -> None:
        """Keep the new choices if the whole model is faster with them, on a busy machine too."""
        graphs = self.graph(Choices(before)), self.graph(Choices(self._chosen))
        default, other = self._timed("the whole model: all choices", graphs, folder, DECIDING)
        faster = default.ok and other.ok and _median(other) < _median(default)
        if default.ok and other.ok:
            self.whole = _median(default), _median(other)
        for site in set(self._chosen) - set(before):
            row = self.rows[site]
            if not faster:
                why = "faster by itself, but the whole model is not"
                row = self.rows[site] = attrs.evolve(
                    row, chosen=DEFAULT, failed={**row.failed, row.chosen: why}
                )
            self.records.add_sites([row.to_json()])

    def _timed(
        self, name: str, graphs: Sequence[KernelGraph], folder: pathlib.Path, repeats: int
    ) -> list[Result]:
        """Graphs in turns, the default first."""
        self.comparisons += 1
        place, settings = registry.place_of(self.target).name, attrs.evolve(self.settings, repeats=repeats)
        target = registry.resolve(self.target).name
        return self.measurer.confirm(
            [Segment(name, write(graph, folder), target, place, self.seed, settings) for graph in graphs]
        )

    def _measured(
        self,
        site: str,
        options: tuple[str, ...],
        graph: KernelGraph,
        folder: pathlib.Path,
        over: Callable[[], bool],
    ) -> SiteResult | None:
        """What is found of a site; None where time is up before that."""
        found: dict[str, tuple[float, float]] = {}
        failed: dict[str, str] = {}
        parts: dict[str, Difference] = {}
        for option in options:
            if over():
                return None
            try:
                part = difference(graph, self.graph(Choices({**self._chosen, site: option})))
            except UirError as error:
                failed[option] = error.what
                continue
            if part is not None:
                parts[option] = part
                self._compare(site, option, part, folder, FIRST, found, failed)
        chosen = DEFAULT
        promising = [name for name, (default, other) in found.items() if other < default * (1 - PROMISING)]
        for option in sorted(promising, key=lambda name: found[name][1] / found[name][0]):
            if over():
                return None
            self._compare(site, option, parts[option], folder, DECIDING, found, failed)
            default, other = found.get(option, (1.0, math.inf))
            if other < default * (1 - GAIN):
                chosen = option
                break
        count = max((part.count for part in parts.values()), default=0)
        return SiteResult(site, chosen, count, found, failed)

    def _compare(
        self,
        site: str,
        option: str,
        part: Difference,
        folder: pathlib.Path,
        repeats: int,
        found: dict[str, tuple[float, float]],
        failed: dict[str, str],
    ) -> None:
        """The default's part and an option's in turns; note medians, or what failed."""
        graphs = part.default, part.other
        default, other = self._timed(f"{site}: {option}", graphs, folder, repeats)
        bad = next((result for result in (default, other) if not result.ok), None)
        if bad is not None:
            found.pop(option, None)
            failed[option] = bad.said
            log.debug("%s: %s is %s: %s", site, option, bad.outcome, bad.said)
        else:
            found[option] = _median(default), _median(other)


def _median(result: Result) -> float:
    return statistics.median(result.seconds)
