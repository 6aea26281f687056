# SPDX-License-Identifier: Apache-2.0
"""Who measures candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from .job import Job, Result

#: Called with a job's number and its result, as results come in.
OnResult = Callable[[int, Result], None]


class Measurer(Protocol):
    """Measures jobs, whatever they do: a candidate that crashes or never ends is a result."""

    name: str

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """The results of some jobs, in their order.

        Parameters
        ----------
        on_result : callable, optional
            Called in this thread as each result comes in, in whatever order.
        """
        ...

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """Measure a few jobs in turns, in one process on one machine, so that their times compare."""
        ...

    def close(self) -> None:
        """End all workers; nothing is measured afterwards."""
        ...
