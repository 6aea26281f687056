# SPDX-License-Identifier: Apache-2.0
"""What tuning brought, as data and for people: of every kernel, of sites of the graph, and of all kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..time_text import duration, time_text

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
class SiteResult:
    """What was measured of a site.

    Parameters
    ----------
    site : str
        As the kernel graph names it.
    chosen : str
        The option that is taken; empty: the default is best.
    count : int
        How often the model has the site.
    options : mapping of str to (float, float)
        Seconds of the default and of the option, in turns; medians of the last comparison.
    failed : mapping of str to str
        Options that are none, and why.
    """

    site: str
    chosen: str
    count: int
    options: Mapping[str, tuple[float, float]] = attrs.field(factory=dict)
    failed: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def gain(self) -> float:
        """How many times faster the chosen option is."""
        default, other = self.options[self.chosen] if self.chosen else (1.0, 1.0)
        return default / other

    @property
    def saved(self) -> float:
        """Seconds of a run of the model."""
        if not self.chosen:
            return 0.0
        default, other = self.options[self.chosen]
        return self.count * (default - other)

    def __str__(self) -> str:
        told = [f"{name} {other / default:.2f} of its time" for name, (default, other) in self._sorted()]
        told += [f"{name} fails" for name in self.failed]
        default = next((pair[0] for _, pair in self._sorted()), None)
        time = "" if default is None else f", default {time_text(default)}"
        what = f"takes {self.chosen}, {self.gain:.2f}x" if self.chosen else "default is best"
        return f"{self.site} ({self.count} in a run{time}): {what}; " + (", ".join(told) or "no other way")

    def _sorted(self) -> list[tuple[str, tuple[float, float]]]:
        return sorted(self.options.items(), key=lambda item: item[1][1] / item[1][0])

    def to_json(self) -> dict[str, Any]:
        """As plain data; times in seconds."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SiteResult:
        """Of what `to_json` gave."""
        options = {name: (float(a), float(b)) for name, (a, b) in data["options"].items()}
        return cls(str(data["site"]), str(data["chosen"]), int(data["count"]), options, dict(data["failed"]))


@attrs.frozen
class SizeTime:
    """What a kernel with open sizes takes at some of them.

    Parameters
    ----------
    sizes : mapping of str to int
        By the kernel's variables, in order.
    weight : float
        How much they count; all weights are 1 together.
    default, seconds : float
        Of the compiler's own schedule, and of the one that was found.
    label : str
        The sizes for people, by the model's names.
    """

    sizes: Mapping[str, int]
    weight: float
    default: float
    seconds: float
    label: str

    def __str__(self) -> str:
        times = f"{time_text(self.default)}, now {time_text(self.seconds)}"
        return f"{self.label} ({self.weight:.0%}): {times}, {self.default / self.seconds:.2f}x"


def size_times(rows: Sequence[SizeTime | Mapping[str, Any]]) -> tuple[SizeTime, ...]:
    """Times by size, of what they are as plain data too."""
    return tuple(row if isinstance(row, SizeTime) else SizeTime(**row) for row in rows)


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
    by_size : tuple of SizeTime
        Of a kernel with open sizes that has a schedule in the database now: its times at representative ones.
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
    by_size: tuple[SizeTime, ...] = ()

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
        for row in self.rows:
            said += [f"{row.kernel} at {time}" for time in row.by_size]
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
