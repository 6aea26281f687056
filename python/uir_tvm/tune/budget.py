# SPDX-License-Identifier: Apache-2.0
"""How long tuning may take: seconds of the clock, trials, or both."""

from __future__ import annotations

import math
import re

import attrs

from ..errors import TuneError
from ..time_text import duration

#: Seconds of a unit of time.
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)\s*([hms]?)\s*")
#: What tuning takes where nobody says how long it may.
DEFAULT = "10m"


def parse_seconds(text: str | float) -> float:
    """Seconds of a duration: ``90s``, ``10m``, ``1h30m``, ``90`` or a number.

    Raises
    ------
    TuneError
        It is none, or not above 0.
    """
    seconds = math.nan
    if isinstance(text, int | float):
        seconds = float(text)
    elif re.fullmatch(rf"(?:{_PARTS.pattern})+", text.strip().lower()):
        seconds = sum(float(n) * UNITS[unit] for n, unit in _PARTS.findall(text.strip().lower()))
    if not 0 < seconds < math.inf:
        raise TuneError(
            f"{text!r} is no time to tune for.",
            where="time_budget, --time-budget",
            need="a duration above 0",
            remedy="write it as 90s, 10m or 1h30m",
        )
    return seconds


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

    seconds: float | None = attrs.field(default=None, converter=attrs.converters.optional(parse_seconds))
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
