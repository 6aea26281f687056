# SPDX-License-Identifier: Apache-2.0
"""The records of one key: two files of MetaSchedule's JSON database, and the key beside them.

``database_workload.json`` has a module a line, ``database_tuning_record.json`` a trace with its seconds;
stock MetaSchedule reads and writes both. A module says by its attributes which kernel it is the beginning of:
the function that a recipe schedules may be a rewritten one (softmax in one pass, wide values).
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.database import TuningRecord, Workload

from ..errors import DatabaseError, first_line
from ..explain.tuning_summary import SizeTime, size_times
from ..json_lines import JsonLines
from ..whole_files import writing
from .job import replayed
from .key import Key

#: Attributes of a workload's module: `tuned_origin` of the kernel, and its name.
ORIGIN, NAME = "uir.origin", "uir.kernel"
#: Of a kernel with open sizes: their names, in order, and what its schedule takes at some of them, as JSON.
SIZE_NAMES, BY_SIZE = "uir.size_names", "uir.by_size"
#: Seconds that MetaSchedule notes for a candidate that did not run.
FAILED = 1e9
#: Files of a records.
KEY_FILE, WORKLOADS, RECORDS = "key.json", "database_workload.json", "database_tuning_record.json"
#: Beside them: what was measured of sites of kernel graphs (`graph_search`), a line for each.
SITES = "graph_sites.jsonl"


@attrs.frozen
class Entry:
    """A measured schedule.

    Parameters
    ----------
    key : Key
        What its time is true of.
    origin, name : str
        The kernel: `tuned_origin`, and how the model called it.
    seconds : tuple of float
        Of every run; modelled where the key's place is ``model``.
    workload, record : list
        As MetaSchedule writes them.
    size_names : tuple of str
        Of a kernel that leaves sizes open: what they are called in the workload, in order.
    by_size : tuple of SizeTime
        Of such a kernel: what it took at representative sizes; `seconds` are of all together.
    """

    key: Key
    origin: str
    name: str
    seconds: tuple[float, ...]
    workload: list[Any] = attrs.field(repr=False)
    record: list[Any] = attrs.field(repr=False)
    size_names: tuple[str, ...] = ()
    by_size: tuple[SizeTime, ...] = ()

    @property
    def sizes(self) -> tuple[tuple[float, ...], ...]:
        """Representative sizes, each with its weight: seconds of equal ones alone compare."""
        return tuple((*time.sizes.values(), time.weight) for time in self.by_size)

    @property
    def mean(self) -> float:
        """Mean seconds, by which MetaSchedule orders records."""
        return sum(self.seconds) / len(self.seconds)

    @property
    def begun(self) -> tvm.tirx.PrimFunc:
        """The function that the trace begins from."""
        return self._tuning_record().workload.mod["main"]

    @property
    def trace(self) -> tvm.s_tir.schedule.Trace:
        """The schedule's instructions and decisions."""
        return self._tuning_record().trace

    def schedule(self) -> Schedule:
        """The schedule, made again from its trace.

        Raises
        ------
        DatabaseError
            The trace does not apply: another TVM wrote it.
        """
        try:
            record = self._tuning_record()
            return replayed(record.workload.mod, record.trace)
        except Exception as error:  # TVM's readers raise many kinds
            raise DatabaseError(
                f"A schedule of {self.name} does not apply.",
                where=self.key.folder,
                limit=getattr(error, "limit", first_line(error)),
                remedy="prune the database, and tune again",
            ) from error

    def _tuning_record(self) -> TuningRecord:
        return TuningRecord.from_json(self.record, Workload.from_json(self.workload))


class Records:
    """The folder of one key.

    Parameters
    ----------
    folder : Path
        It is made when something is added.
    key : Key
        Whose records it holds.
    """

    def __init__(self, folder: pathlib.Path, key: Key) -> None:
        self.folder, self.key = folder, key
        self._workloads = JsonLines(folder / WORKLOADS, DatabaseError)
        self._records = JsonLines(folder / RECORDS, DatabaseError)
        self._sites = JsonLines(folder / SITES, DatabaseError)

    @classmethod
    def open(cls, folder: pathlib.Path) -> Records:
        """The records in a folder.

        Raises
        ------
        DatabaseError
            There is no key in it.
        """
        try:
            return cls(folder, Key.from_json(json.loads((folder / KEY_FILE).read_text())))
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise DatabaseError(
                f"{folder} holds no schedules.",
                need=f"{KEY_FILE} that says what they are for",
                limit=str(error),
                remedy="restore the file, or move the folder away",
            ) from error

    def entries(self) -> list[Entry]:
        """All records, as they were added; what never ran is left out.

        Raises
        ------
        DatabaseError
            A file is damaged.
        """
        workloads = self._workloads.read()
        heads = [self._head(number, line) for number, line in enumerate(workloads, 1)]
        entries = []
        for number, line in enumerate(self._records.read(), 1):
            try:
                index, record = line
                origin, name, sizes, times = heads[index]
                seconds = tuple(float(second) for second in record[1] or ())
            except (ValueError, TypeError, IndexError) as error:
                raise self._damaged(RECORDS, number) from error
            if seconds and max(seconds) < FAILED:
                workload = workloads[index]
                entries.append(Entry(self.key, origin, name, seconds, workload, record, sizes, times))
        return entries

    def extend(self, entries: Sequence[Entry]) -> int:
        """Add entries that are not there yet; returns how many."""
        self.begin()
        workloads = self._workloads.read()
        known = {json.dumps(line) for line in self._records.read()}
        index = {json.dumps(workload): at for at, workload in enumerate(workloads)}
        new = []
        for entry in entries:
            text = json.dumps(entry.workload)
            if text not in index:
                index[text] = len(index)
                self._workloads.add([entry.workload])
            line = [index[text], entry.record]
            if json.dumps(line) not in known:
                known.add(json.dumps(line))
                new.append(line)
        self._records.add(new)
        return len(new)

    def sites(self) -> dict[str, dict[str, Any]]:
        """What was measured of each site of kernel graphs, the last line of each.

        Raises
        ------
        DatabaseError
            The file is damaged.
        """
        return {str(row["site"]): row for row in self._sites.read()}

    def add_sites(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Keep what was measured of sites that are not there yet; returns how many."""
        known = self.sites()
        new = [row for row in rows if row["site"] not in known]
        if new:
            self.begin()
            self._sites.add(new)
        return len(new)

    def keep(self, entries: Sequence[Entry]) -> None:
        """Keep these of its entries alone."""
        workloads: list[Any] = []
        for entry in entries:
            if entry.workload not in workloads:
                workloads.append(entry.workload)
        # records first to nothing: a crash in between may lose records, but pairs none with a wrong module
        self._records.replace([])
        self._workloads.replace(workloads)
        self._records.replace([[workloads.index(e.workload), e.record] for e in entries])

    def begin(self) -> None:
        """Make the folder, and say in it what it is for."""
        with writing(self.folder, DatabaseError):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / KEY_FILE).is_file():
            JsonLines(self.folder / KEY_FILE, DatabaseError).replace([self.key.to_json()])

    def _head(self, number: int, line: Any) -> tuple[str, str, tuple[str, ...], tuple[SizeTime, ...]]:
        """(origin, name, names of sizes, times by size) of a workload."""
        try:
            attributes = Workload.from_json(line).mod.attrs or {}
            names = tuple(map(str, attributes.get(SIZE_NAMES, ())))
            times = size_times(json.loads(str(attributes.get(BY_SIZE, "[]"))))
            return str(attributes.get(ORIGIN, "")), str(attributes.get(NAME, "main")), names, times
        except Exception as error:  # TVM's reader raises whatever its C++ throws
            raise self._damaged(WORKLOADS, number) from error

    def _damaged(self, file: str, number: int) -> DatabaseError:
        return DatabaseError(
            f"Line {number} of {self.folder / file} is no entry of a MetaSchedule database.",
            remedy="restore the file, or delete the folder and tune again",
        )
