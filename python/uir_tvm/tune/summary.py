# SPDX-License-Identifier: Apache-2.0
"""What tuning brought: of every task and of all kernels of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import tvm

from ..target import registry
from ..time_text import time_text
from .budget import duration
from .database import ScheduleDatabase
from .graph_search import SiteResult
from .interrupt import Interruptible
from .state import TuningState
from .task import Extracted
from .task_record import TaskRecord

#: Rows up to which each says why it stopped.
FEW = 24
#: Tasks that are further from their roofline than this, and take more than this share, are named at the end.
FAR, WORTH = 0.5, 0.02


def roofline_text(share: float | None) -> str:
    """A share of the roofline for people; that of a kernel that beats it says nothing more."""
    if share is None:
        return "not known"
    return f"{share:.0%}" if share <= 1 else "beyond"


@attrs.frozen
class Row:
    """What tuning brought to a task.

    Parameters
    ----------
    kernel, origin : str
    launches : int
        In a run of the model.
    share_before : float
        Of what the kernels took together before.
    default : float or None
        Seconds of the compiler's own schedule; None: it was not measured.
    best : float or None
        Seconds of the schedule that the database has now, in the same comparison as `default`; the default's
        where that stays.
    pending : float or None
        Seconds of a faster one that is not confirmed yet.
    of_roofline : float or None
        Share of its roofline that the best reaches, above 1 where caches hold its data; None: not known.
    trials : int
        Candidates measured, of earlier runs too.
    rejected : mapping of str to int
        Candidates by outcome of which no time counts.
    stopped : str
        Why no more batches were spent on it.
    reports : tuple of str
        Files about candidates that were wrong.
    """

    kernel: str
    origin: str
    launches: int
    share_before: float
    default: float | None
    best: float | None
    pending: float | None
    of_roofline: float | None
    trials: int
    rejected: Mapping[str, int]
    stopped: str
    reports: tuple[str, ...] = ()

    @property
    def gain(self) -> float | None:
        """How many times faster it is; None where nothing was measured."""
        return self.default / self.best if self.default and self.best else None

    @property
    def before(self) -> float:
        """Seconds in a run of the model, before."""
        return self.launches * (self.default or 0.0)

    @property
    def after(self) -> float:
        """Seconds in a run of the model, now."""
        return self.launches * (self.best or 0.0)

    def to_json(self) -> dict[str, Any]:
        """As plain data; times in seconds."""
        return {**attrs.asdict(self), "gain": self.gain}

    def shown(self) -> dict[str, str]:
        """Cells of a table."""
        gain = "" if self.gain is None else f"{self.gain:.2f}x"
        if self.pending is not None and self.best:
            gain += f" ({self.best / self.pending:.2f}x more unconfirmed)"
        wrong = sum(self.rejected.values())
        return {
            "kernel": self.kernel,
            "launches": str(self.launches),
            "share before": f"{self.share_before:.0%}",
            "default": "" if self.default is None else time_text(self.default),
            "best": "" if self.best is None else time_text(self.best),
            "gain": gain,
            "of roofline": roofline_text(self.of_roofline),
            "trials": f"{self.trials}" + (f", {wrong} rejected" if wrong else ""),
        }


@attrs.frozen
class Summary:
    """What tuning brought.

    Parameters
    ----------
    model, target, place, measurer, database : str
    rows : tuple of Row
        Largest share of the kernels' time first.
    modelled : bool
        Whether times are a host model's.
    seconds : float
        That this run took.
    trials, resumed : int
        Candidates measured in this run, and in earlier ones.
    ended : str
        Why it ended.
    signal : int
        That interrupted it; 0: none.
    left : mapping of str to str
        Kernels that were not tuned, and why.
    library : int
        Launches of the target's library, which are in no total.
    sites : tuple of SiteResult
        Of the graph: how products run, and what shares a kernel.
    """

    model: str
    target: str
    place: str
    measurer: str
    database: str
    rows: tuple[Row, ...]
    modelled: bool
    seconds: float
    trials: int
    resumed: int
    ended: str
    signal: int = 0
    left: Mapping[str, str] = attrs.field(factory=dict)
    library: int = 0
    sites: tuple[SiteResult, ...] = ()

    @property
    def before(self) -> float:
        """Seconds that all launches of the tuned kernels took with the compiler's own schedules."""
        return sum(row.before for row in self.rows)

    @property
    def after(self) -> float:
        """The same with the schedules of the database."""
        return sum(row.after for row in self.rows)

    @property
    def far(self) -> tuple[Row, ...]:
        """Tasks that are worth something and still far from their roofline."""
        total = self.after
        return tuple(
            row
            for row in self.rows
            if row.of_roofline is not None and row.of_roofline < FAR and row.after > WORTH * total
        )

    def to_json(self) -> dict[str, Any]:
        """As plain data; times in seconds."""
        data = attrs.asdict(self, recurse=False)
        data["rows"] = [row.to_json() for row in self.rows]
        data["sites"] = [site.to_json() for site in self.sites]
        data |= {"before": self.before, "after": self.after, "far": [row.kernel for row in self.far]}
        return data

    def lines(self) -> list[str]:
        """What is said below the table."""
        kind = "modelled, not measured" if self.modelled else "measured"
        said = [
            f"{self.trials} trials in {duration(self.seconds)}"
            + (f", after {self.resumed} of earlier runs" if self.resumed else "")
            + f"; ended: {self.ended}"
        ]
        if self.before and self.after:
            said.append(
                f"the model's kernels alone ({kind}; {self.library} launches of the library are not in it): "
                f"{time_text(self.before)} before, {time_text(self.after)} after, "
                f"{self.before / self.after:.2f}x"
            )
        if self.sites:
            taken = [site for site in self.sites if site.chosen]
            saved = sum(site.saved for site in taken)
            said.append(
                f"{len(self.sites)} sites of the graph: {len(taken)} take another option than the default's"
                + (f", which saves {time_text(saved)} of a run" if taken else "")
            )
            said += [str(site) for site in (self.sites if len(self.sites) <= FEW else taken)]
        reasons = Counter(row.stopped for row in self.rows if row.stopped)
        if len(self.rows) <= FEW:
            said += [f"{row.kernel}: {row.stopped}" for row in self.rows if row.stopped]
        else:
            said += [f"{count} kernels: {reason}" for reason, count in reasons.items()]
        for row in self.far:
            assert row.of_roofline is not None
            said.append(f"{row.kernel} is still far from its roofline ({row.of_roofline:.0%})")
        for name, why in self.left.items():
            said.append(f"{name} is not tuned: {why}")
        for row in self.rows:
            said += [f"{row.kernel}: a candidate computed something else: {path}" for path in row.reports]
        if any(row.pending is not None for row in self.rows):
            said.append("what is unconfirmed is confirmed when the same command is run again")
        said.append(f"schedules are in {self.database}: compile with --database {self.database}")
        return said


def without_tasks(
    label: str,
    target: tvm.target.Target,
    database: ScheduleDatabase,
    measurer: str,
    seconds: float,
    sites: tuple[SiteResult, ...],
    interrupt: Interruptible,
) -> Summary:
    """Of a model that has no kernel of ours, whose graph alone was tuned."""
    return Summary(
        model=label,
        target=registry.resolve(target).name,
        place=registry.place_of(target).name,
        measurer=measurer,
        database=str(database.folder),
        rows=(),
        modelled=False,
        seconds=seconds,
        trials=0,
        resumed=0,
        ended="interrupted" if interrupt.signal else "the model has no kernel of ours",
        signal=interrupt.signal,
        sites=sites,
    )


def summarise(
    known: TuningState,
    label: str,
    found: Extracted,
    measurer: str,
    seconds: float,
    ended: str,
    signal: int = 0,
    sites: tuple[SiteResult, ...] = (),
) -> Summary:
    """What is known of tasks, as a summary; its parameters are those of `Summary`."""
    target = found.tasks[0].target
    records = sorted(known.records.values(), key=lambda record: -_before(record))
    total = sum(map(_before, records))
    return Summary(
        model=label,
        target=registry.resolve(target).name,
        place=registry.place_of(target).name,
        measurer=measurer,
        database=str(known.database.folder),
        rows=tuple(_row(known, record, total) for record in records),
        modelled=known.modelled,
        seconds=seconds,
        trials=known.trials,
        resumed=known.resumed,
        ended=ended,
        signal=signal,
        left=found.left,
        library=found.library,
        sites=sites,
    )


def _before(record: TaskRecord) -> float:
    known = record.default_result is not None and record.default_result.ok
    return record.task.weight * record.default if known else 0.0


def _row(known: TuningState, record: TaskRecord, total: float) -> Row:
    state, default, best = record, None, None
    if record.default_result is not None and record.default_result.ok:
        default = best = state.default
    if record.kept is not None:
        default, best = record.kept.seconds
    waiting = known.pending(record)
    # on the scale of the comparison that the other times are of
    pending = None
    if waiting is not None and default:
        pending = record.seconds_of(waiting.digest) * default / state.default
    near = state.bound / best if best and state.bound > 0 else None
    return Row(
        kernel=record.task.name,
        origin=record.task.origin,
        launches=record.task.weight,
        share_before=_before(record) / total if total else 0.0,
        default=default,
        best=best,
        pending=pending,
        of_roofline=near,
        trials=state.trials,
        rejected={k: n for k, n in state.outcomes.items() if k != "ok"},
        stopped=state.stopped,
        reports=tuple(record.reports),
    )
