# SPDX-License-Identifier: Apache-2.0
"""What tuning has tried: a line for every trial, on the disk before the next one begins.

The journal lies beside the schedules of its key, so that times of other versions or hardware are not taken
up.  It is the state of the search: a run that was ended, in whatever way, goes on from it.  Only what was
confirmed is in the database itself.
"""

from __future__ import annotations

import os
import pathlib
import statistics
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from ..errors import DatabaseError
from ..explain.tuning_summary import SizeTime, size_times
from ..json_lines import JsonLines
from ..whole_files import writing
from .job import Plain, Result, seconds_of
from .key import Key
from .records import Records

#: Where the journal lies in the folder of a key.
FOLDER, FILE = "tuning", "journal.jsonl"
#: Kinds of lines.
TRIAL, CONFIRMED = "trial", "confirmed"


@attrs.frozen
class Trial(Plain):
    """A measured schedule of a kernel.

    Parameters
    ----------
    origin, kernel : str
        The task: by what it is found again, and how the model called it.
    digest : str
        Of the candidate; empty for the compiler's own schedule.
    candidate : mapping or None
        As `search.Candidate.to_json` gives it; None for the compiler's own schedule.
    result : Result
        ``report`` is the path of a file where the candidate was wrong.
    wall : float
        Seconds that the trial took.
    """

    origin: str
    kernel: str
    digest: str
    candidate: Mapping[str, Any] | None = attrs.field(repr=False)
    result: Result = attrs.field(
        converter=lambda given: Result(**given) if isinstance(given, dict) else given
    )
    wall: float = 0.0


@attrs.frozen
class Confirmation(Plain):
    """A schedule and the compiler's own one, measured in turns.

    Parameters
    ----------
    default, best : tuple of float
        Their seconds; ``best`` is empty where the schedule failed.
    kept : bool
        Whether the schedule was faster, and is in the database.
    by_size : tuple of SizeTime
        Of a kernel with open sizes: medians of both at each representative one.
    """

    origin: str
    digest: str
    default: tuple[float, ...] = attrs.field(converter=seconds_of)
    best: tuple[float, ...] = attrs.field(converter=seconds_of)
    kept: bool
    by_size: tuple[SizeTime, ...] = attrs.field(default=(), converter=size_times)

    @property
    def seconds(self) -> tuple[float, float]:
        """Medians of the default and of the schedule; infinite where there are none."""
        default, best = (statistics.median(s) if s else float("inf") for s in (self.default, self.best))
        return default, best

    @property
    def ratio(self) -> float:
        """Time of the schedule over that of the default; infinite where one failed."""
        default, best = self.seconds
        return best / default if self.default and self.best else float("inf")


Line = Trial | Confirmation
_KINDS: dict[str, type[Any]] = {TRIAL: Trial, CONFIRMED: Confirmation}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Journal:
    """The journal of a key in a database.

    Parameters
    ----------
    database : str or Path
        The database's folder.
    key : Key
        What times are true of.
    """

    def __init__(self, database: str | os.PathLike[str], key: Key) -> None:
        self.records = Records(pathlib.Path(database) / key.folder, key)
        self.path = self.records.folder / FOLDER / FILE
        self._lines = JsonLines(self.path, DatabaseError)

    def lines(self) -> Iterator[Line]:
        """All lines, in the order in which they were added; one that a crash cut short is left out.

        Raises
        ------
        DatabaseError
            The file cannot be read, or a line is none of a journal.
        """
        for number, data in enumerate(self._lines.read(), 1):
            try:
                fields = dict(data)
                yield _KINDS[fields.pop("what")](**fields)
            except (KeyError, TypeError, ValueError) as error:
                raise DatabaseError(
                    f"Line {number} of {self.path} is none of a journal.",
                    limit=f"{type(error).__name__}: {error}",
                    remedy="delete the line, or the file to start anew; the schedules stay",
                ) from error

    def add(self, *lines: Line) -> None:
        """Add lines; when this returns they are on the disk.

        Raises
        ------
        DatabaseError
            The file cannot be written.
        """
        self.records.begin()
        with writing(self.path, DatabaseError):
            self.path.parent.mkdir(exist_ok=True)
        self._lines.add([{"what": _NAMES[type(line)], **line.to_json()} for line in lines])
