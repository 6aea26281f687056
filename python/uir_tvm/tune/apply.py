# SPDX-License-Identifier: Apache-2.0
"""Kernels take their measured schedules from a database; the first time on a machine they are compared."""

from __future__ import annotations

import hashlib
import json
import logging
import pathlib

import attrs
import tvm
from tvm import tirx

from .. import options
from ..errors import DatabaseError
from ..options import CompileOptions
from .database import ScheduleDatabase
from .shelf import Entry

log = logging.getLogger(__name__)


@attrs.frozen
class Measured:
    """A schedule of the database for a kernel.

    Parameters
    ----------
    scheduled : PrimFunc
        The kernel, scheduled.
    options : CompileOptions
        Those of the compilation; where this machine never used the schedule, with a comparison of what it
        computes.
    mark : Path
        A file that says that the schedule was compared here.
    """

    scheduled: tirx.PrimFunc
    options: CompileOptions
    mark: pathlib.Path

    def works(self) -> None:
        """Note that the schedule was compared, if it was."""
        if self.options.equivalence == "none" or self.mark.exists():
            return
        try:
            self.mark.parent.mkdir(parents=True, exist_ok=True)
            self.mark.touch()
        except OSError as error:
            log.info("the comparison is not noted: %s", error)


def measured(func: tirx.PrimFunc, target: tvm.target.Target, given: CompileOptions) -> Measured | None:
    """The fastest schedule of a kernel that the database of a compilation has; None where it has none.

    Raises
    ------
    DatabaseError
        There is no database in the folder, or it is damaged.
    """
    if given.database is None:
        return None
    entry = ScheduleDatabase.existing(given.database).best(func, target)
    if entry is None:
        return None
    try:
        made = entry.schedule().mod["main"]
    except DatabaseError as error:
        log.warning("%s", error)
        return None
    for name in func.attrs.keys() if func.attrs else ():
        made = made.with_attr(name, func.attrs[name])
    mark = options.cache_dir() / "compared" / _digest(entry)
    if given.equivalence == "none" and not mark.exists():
        given = attrs.evolve(given, equivalence="sampled")
    return Measured(made, given, mark)


def _digest(entry: Entry) -> str:
    """By what a comparison is remembered: schedule, kernel and versions."""
    text = json.dumps([entry.key.to_json(), entry.workload, entry.record], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
