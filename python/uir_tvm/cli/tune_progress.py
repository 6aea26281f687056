# SPDX-License-Identifier: Apache-2.0
"""What tuning shows while it runs: a table that renews itself on a terminal, lines elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ..explain.tuning_summary import SiteResult
from ..time_text import duration, time_text
from ..tune.job import WRONG, Result
from ..tune.journal import Confirmation
from ..tune.session import Session, Watcher
from ..tune.task_record import TaskRecord, total_seconds

#: Renewals of the table in a second.
RATE = 4
#: Rows of the table; the smallest shares are left out.
ROWS = 24


class Progress(Watcher):
    """Shows a session on a console.

    Parameters
    ----------
    console : Console
        Standard error, as a rule.
    quiet : bool
        Show nothing.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self.console, self.quiet = console, quiet
        self.session: Session | None = None
        self.doing = "starting"
        self._now: TaskRecord | None = None
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        if not self.quiet and self.console.is_terminal:
            self._live = Live(
                get_renderable=self._table, console=self.console, refresh_per_second=RATE, transient=True
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def phase(self, text: str) -> None:
        """See `Watcher.phase`."""
        self._end_batch()
        self.doing, self._now = text, None
        self._say(text if self.session is None else f"[{self._clock()}] {text}")

    def started(self, session: Session) -> None:
        """See `Watcher.started`."""
        self.session = session
        resumed = (
            f"; {session.known.resumed} trials of earlier runs are taken up" if session.known.resumed else ""
        )
        count, by = len(session.known.records), session.measurer.name
        self._say(f"{count} kernels to tune, {session.budget}, by {by}{resumed}")

    def batch(self, state: TaskRecord, count: int) -> None:
        """See `Watcher.batch`."""
        self._end_batch()
        self._now = state
        self.doing = f"{state.task.name}: {count} candidates"
        total = total_seconds(self.session.known.states) if self.session is not None else 0.0
        if total:
            self.doing += f" ({state.seconds / total:.0%} of the kernels' time)"

    def default(self, state: TaskRecord, result: Result) -> None:
        """See `Watcher.default`."""
        why = f"{result.outcome}: {result.said}".splitlines()[0]
        said = time_text(result.median) if result.ok else why
        self._say(f"[{self._clock()}] {state.task.name}: default {said}")

    def trial(self, state: TaskRecord, result: Result) -> None:
        """See `Watcher.trial`."""
        if result.outcome == WRONG:
            self._say(f"{state.task.name}: a candidate computes something else, see {result.report}")

    def confirmed(self, state: TaskRecord, confirmation: Confirmation) -> None:
        """See `Watcher.confirmed`."""
        default, best = confirmation.seconds
        if confirmation.default and confirmation.best:
            what = "in the database" if confirmation.kept else "not faster than what was there, which stays"
            said = f"{time_text(best)} after {time_text(default)}, {default / best:.2f}x: {what}"
        else:
            said = "the second measurement failed: what was there stays"
        self._say(f"{state.task.name}: {said}")

    def site(self, result: SiteResult) -> None:
        """See `Watcher.site`."""
        self._say(str(result))

    def _end_batch(self) -> None:
        state = self._now
        if state is not None and state.trial_wall and self.session is not None:
            self._say(
                f"[{self._clock()}] {self.doing}: best {time_text(state.best)}, "
                f"default {time_text(state.default)}"
            )

    def _say(self, text: str) -> None:
        if not self.quiet and self._live is None:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _clock(self) -> str:
        assert self.session is not None
        left = self.session.seconds_left()
        return duration(self.session.seconds) + ("" if left is None else f", {duration(left)} left")

    def _table(self) -> Group:
        """The state of things."""
        if self.session is None:
            return Group(Text(self.doing))
        states = sorted(self.session.known.states, key=lambda state: -state.seconds)
        total = total_seconds(states)
        heads = ("kernel", "of the time", "default", "best", "gain", "of roofline", "trials", "")
        table = Table(*heads, box=None)
        for state in states[:ROWS]:
            share = state.share_of_bound
            known = state.default < float("inf")
            table.add_row(
                escape(state.task.name),
                f"{state.seconds / total:.0%}" if total else "",
                time_text(state.default) if known else "",
                time_text(state.best) if known else "",
                f"{state.default / state.best:.2f}x" if known else "",
                "" if share is None else f"{share:.0%}",
                f"{state.trials}" + (f", {state.rejected} rejected" if state.rejected else ""),
                "<" if state is self._now else escape(state.stopped),
            )
        more = [Text(f"and {len(states) - ROWS} more")] if len(states) > ROWS else []
        before = sum(s.task.weight * s.default for s in states if s.default < float("inf"))
        said = f"{self._clock()}; {self.session.known.trials} trials"
        if total:
            said += f"; kernels of a run: {time_text(before)} before, {time_text(total)} by the best so far"
        if self.session.known.modelled:
            said += " (modelled)"
        ending = self.session.interrupt.signal
        stop = "ending; Ctrl-C again: at once" if ending else "Ctrl-C ends, and keeps all"
        return Group(table, *more, Text(said), Text(self.doing), Text(stop, style="dim"))
