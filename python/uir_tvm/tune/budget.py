# SPDX-License-Identifier: Apache-2.0
"""How long tuning may take: seconds of the clock, trials, or both."""

from __future__ import annotations

import attrs

from ..errors import TuneError
from ..time_text import duration, parse_duration

#: What tuning takes where nobody says how long it may.
DEFAULT = "10m"


def _seconds(text: str | float) -> float:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise TuneError(
            f"{text!r} is no time to tune for.",
            where="time_budget, --time-budget",
            need="a duration above 0",
            remedy="write it as 90s, 10m or 1h30m",
        ) from error


def _count(trials: int | None) -> int | None:
    if trials is not None and (isinstance(trials, bool) or int(trials) != trials or trials < 1):
        raise TuneError(
            f"{trials!r} trials cannot be made.", where="trials, --trials", need="a whole number above 0"
        )
    return trials


@attrs.frozen
class Budget:
    """Time, trials or both: what is used up first ends the tuning.

    Parameters
    ----------
    seconds : float, optional
        Of this run, all that it does included.
    trials : int, optional
        Of all runs on this database, those before included.
    """

    seconds: float | None = attrs.field(default=None, converter=attrs.converters.optional(_seconds))
    trials: int | None = attrs.field(default=None, converter=_count)

    @classmethod
    def of(cls, time_budget: str | float | None, trials: int | None) -> Budget:
        """Of what a user says; ten minutes where that is nothing.

        Raises
        ------
        TuneError
            No duration, or no number of trials.
        """
        return cls(DEFAULT if time_budget is None and trials is None else time_budget, trials)

    def __str__(self) -> str:
        said = [] if self.seconds is None else [duration(self.seconds)]
        return " or ".join(said + ([] if self.trials is None else [f"{self.trials} trials"]))
