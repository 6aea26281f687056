# SPDX-License-Identifier: Apache-2.0
"""Kernels take their measured schedules from a database; the first time on a machine they are compared."""

from __future__ import annotations

import json
import logging

import attrs
import tvm
from tvm import tirx

from ..cache import Cache
from ..errors import DatabaseError
from ..options import CompileOptions
from ..schedule.tuned import Tuned, scheduled_as
from .database import ScheduleDatabase
from .records import Entry

log = logging.getLogger(__name__)

#: What was compared on this machine, and the end of the names of its files, which are empty.
COMPARED, MARK = Cache("compared"), ".mark"


def _compared(mark: bytes) -> bool:
    return COMPARED.read(mark, MARK) is not None


def tuned_schedule(func: tirx.PrimFunc, target: tvm.target.Target, given: CompileOptions) -> Tuned | None:
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
    made = scheduled_as(func, made, entry.size_names)
    mark = _named(entry)
    if _compared(mark):
        return Tuned(made, given, lambda: None)
    if given.equivalence == "none":
        given = attrs.evolve(given, equivalence="sampled")
    return Tuned(made, given, lambda: COMPARED.remember(mark, b"", MARK))


def _named(entry: Entry) -> bytes:
    """By what a comparison is remembered: schedule, kernel and versions."""
    return json.dumps([entry.key.to_json(), entry.workload, entry.record], sort_keys=True).encode()
