# SPDX-License-Identifier: Apache-2.0
"""A folder of measured schedules, and what is done with it: find the best, add, merge, prune."""

from __future__ import annotations

import functools
import json
import logging
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.database import TuningRecord, Workload
from tvm_ffi.structural import structural_equal

from ..errors import DatabaseError, ScheduleRefusedError, UirError
from ..explain.tuning_summary import SiteResult, SizeTime
from ..function_attributes import bare
from ..schedule.tuned import size_names, tuned_origin
from .job import replayed
from .key import Key, key_of
from .records import BY_SIZE, KEY_FILE, NAME, ORIGIN, SIZE_NAMES, Entry, Records

log = logging.getLogger(__name__)

#: What stands for the database that comes with the package, wherever one is named; a folder of that name is
#: ``./shipped``. It was made by ``uir tune`` and ``uir db export`` (docs/tuning.md says how).
SHIPPED = "shipped"
FOLDER = pathlib.Path(__file__).parent / "shipped_schedules"
#: What was said already, so that a model of a hundred kernels says it once.
_said: set[str] = set()


class ScheduleDatabase:
    """Measured schedules of kernels, for any number of targets.

    A folder with a folder for each `Key`: other hardware, or other versions of TVM, of this project or of the
    toolchain, never share records. Records of keys that are not this machine's stay, and are not used.

    Parameters
    ----------
    folder : str or Path
        It need not exist yet.  ``shipped``: that of the package, for reading.

    Raises
    ------
    DatabaseError
        The path is no folder.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = folder_of(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise DatabaseError(f"{self.folder} is a file.", need="a folder", remedy="name another path")

    @classmethod
    def existing(cls, folder: str | os.PathLike[str]) -> ScheduleDatabase:
        """The database of a folder that must be there.

        Raises
        ------
        DatabaseError
            There is no such folder.
        """
        if not folder_of(folder).exists():
            raise DatabaseError(
                f"There is no database {folder}.",
                need="a folder of measured schedules",
                remedy="check the path",
            )
        return cls(folder)

    def to_write(self) -> ScheduleDatabase:
        """This database, to be added to.

        Raises
        ------
        DatabaseError
            It is the one that comes with the package.
        """
        if self.folder == FOLDER:
            raise DatabaseError(
                "The database that comes with the package is for reading.",
                need="a folder of your own",
                remedy="name another folder; `uir db merge FOLDER shipped` puts what is shipped into it",
            )
        return self

    def records(self, key: Key) -> Records:
        """Those of a key, which may have none yet."""
        return Records(self.folder / key.folder, key)

    def all_records(self) -> list[Records]:
        """One for each key, by name.

        Raises
        ------
        DatabaseError
            A folder is damaged.
        """
        return [Records.open(path.parent) for path in sorted(self.folder.glob(f"*/{KEY_FILE}"))]

    def entries(self) -> list[Entry]:
        """Every record of every key, best first for each kernel, as `best` has it."""
        found = [row for records in self.all_records() for row in _by_rank(records.entries())]
        return sorted(found, key=lambda entry: (entry.key.folder, entry.name, entry.origin))

    def sites(self) -> list[tuple[Key, SiteResult]]:
        """What was measured of sites of kernel graphs, with what it is true of.

        Raises
        ------
        DatabaseError
            A folder is damaged.
        """
        rows = [(records.key, row) for records in self.all_records() for row in records.sites().values()]
        return [(key, SiteResult.from_json(row)) for key, row in rows]

    def add(
        self,
        func: tirx.PrimFunc,
        sch: Schedule,
        seconds: Sequence[float],
        target: str | tvm.target.Target,
        *,
        begun: tirx.PrimFunc | None = None,
        key: Key | None = None,
        by_size: Sequence[SizeTime] = (),
    ) -> Entry:
        """Keep a schedule.

        Parameters
        ----------
        func : PrimFunc
            The kernel as the compiler meets it, unscheduled.
        sch : Schedule
            With a trace of all that was done.
        seconds : sequence of float
            Of every run.
        target : str or Target
            For which it was measured.
        begun : PrimFunc, optional
            The function that the schedule began from, where it is a rewritten one; default: `func`.
        key : Key, optional
            Of the machine that measured it; default: this one's.
        by_size : sequence of SizeTime
            Of a kernel that leaves sizes open: what it took at representative ones.

        Raises
        ------
        DatabaseError
            No seconds; the trace does not give the schedule again; the folder cannot be written.
        """
        self.to_write()
        if not seconds or not all(0 < second < float("inf") for second in seconds):
            given = str(list(seconds))
            raise DatabaseError("A schedule without a time.", need="seconds above 0", limit=given)
        key = key_of(target) if key is None else key
        name, origin = str((func.attrs or {}).get("global_symbol", "main")), tuned_origin(func)
        mod = tvm.IRModule({"main": func if begun is None else begun})
        mod, names = mod.with_attr(ORIGIN, origin).with_attr(NAME, name), tuple(size_names(func))
        if names:
            times = json.dumps([attrs.asdict(time) for time in by_size])
            mod = mod.with_attr(SIZE_NAMES, list(names)).with_attr(BY_SIZE, times)
        _refuse_other_beginning(mod, sch, name)
        workload = Workload(mod)
        record = TuningRecord(sch.trace, workload, [float(s) for s in seconds])
        written = [json.loads(json.dumps(value)) for value in (workload.as_json(), record.as_json())]
        taken = tuple(map(float, seconds))
        entry = Entry(key, origin, name, taken, written[0], written[1], names, tuple(by_size))
        self.records(key).extend([entry])
        return entry

    def best(self, func: tirx.PrimFunc, target: str | tvm.target.Target) -> Entry | None:
        """The fastest schedule of a kernel for this machine; None where there is none.

        Records of other versions or hardware are passed over, which is said once.
        """
        key = key_of(target)
        self._say_what_is_stale(key)
        records = self.records(key)
        if not (records.folder / KEY_FILE).is_file():
            return None
        return _best_by_origin(records.folder, _stamp(records.folder)).get(tuned_origin(func))

    def merge(
        self, other: ScheduleDatabase, keep: int | None = None, keys: Iterable[Key] | None = None
    ) -> int:
        """Take over what another database has and this one lacks.

        Parameters
        ----------
        keep : int, optional
            Only so many of each kernel, fastest first.
        keys : iterable of Key, optional
            Only those; default: all.

        Returns
        -------
        int
            How many records are new.
        """
        wanted = None if keys is None else {key.folder for key in keys}
        self.to_write()
        new = 0
        for records in other.all_records():
            if wanted is None or records.key.folder in wanted:
                own = self.records(records.key)
                new += own.extend(_fastest(records.entries(), keep)) + own.add_sites(
                    [*records.sites().values()]
                )
        return new

    def prune(self, keep: int = 1) -> int:
        """Keep only the fastest of each kernel; returns how many records are gone."""
        self.to_write()
        gone = 0
        for records in self.all_records():
            entries = records.entries()
            kept = _fastest(entries, keep)
            gone += len(entries) - len(kept)
            records.keep(kept)
        return gone

    def _say_what_is_stale(self, key: Key) -> None:
        for records in self.all_records():
            same = records.key.subject == key.subject
            why = key.differs(records.key) if same else ""
            if why and str(records.folder) not in _said:
                _said.add(str(records.folder))
                log.warning("schedules in %s are not used: %s; tune again", records.folder, why)


def folder_of(name: str | os.PathLike[str]) -> pathlib.Path:
    """The folder of a database: the package's own for `SHIPPED`, else the path that was given."""
    return FOLDER if os.fspath(name) == SHIPPED else pathlib.Path(name)


def stale(key: Key) -> str:
    """Why records of a key are not used on this machine; empty where they are."""
    try:
        return key_of(f"{key.target}:{key.hardware}", key.place).differs(key)
    except UirError as error:
        return error.what


def _refuse_other_beginning(mod: tvm.IRModule, sch: Schedule, name: str) -> None:
    """Replay a trace: it must give the schedule's function."""
    said = "the trace gives another function"
    try:
        same = structural_equal(bare(replayed(mod, sch.trace).mod["main"]), bare(sch.mod["main"]))
    except ScheduleRefusedError as error:
        same, said = False, error.limit
    if not same:
        raise ScheduleRefusedError(
            f"The schedule of {name} cannot be made again by its trace.",
            need="the function that the schedule began from, and a trace of all that was done to it",
            limit=said,
            remedy="pass that function as `begun`",
        )


def _fastest(entries: Iterable[Entry], keep: int | None) -> list[Entry]:
    """So many of each kernel, fastest first."""
    by_kernel: dict[tuple[Any, ...], list[Entry]] = {}
    for entry in entries:
        by_kernel.setdefault((entry.origin, entry.name, entry.sizes), []).append(entry)
    return [entry for same in by_kernel.values() for entry in sorted(same, key=lambda e: e.mean)[:keep]]


def _stamp(folder: pathlib.Path) -> tuple[int, ...]:
    """Changes when a file of a key's folder does."""
    return tuple(path.stat().st_mtime_ns for path in sorted(folder.iterdir()))


@functools.lru_cache(maxsize=16)
def _best_by_origin(folder: pathlib.Path, stamp: tuple[int, ...]) -> dict[str, Entry]:
    """The fastest entry of each kernel on a records."""
    best: dict[str, Entry] = {}
    for entry in _by_rank(Records.open(folder).entries()):
        best.setdefault(entry.origin, entry)
    return best


def _by_rank(entries: Sequence[Entry]) -> list[Entry]:
    """Fastest first; of a kernel with open sizes those for the representative ones that were added last."""
    last = {entry.origin: entry.sizes for entry in entries}
    return sorted(entries, key=lambda entry: (entry.sizes != last[entry.origin], entry.mean))
