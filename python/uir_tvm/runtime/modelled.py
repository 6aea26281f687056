# SPDX-License-Identifier: Apache-2.0
"""What a run on a device's host model would have taken on the device, by the model's stated costs.

with modelled.recording(hardware=hardware.get("910b2", "ascend")) as found:
    exe(x)
found.times.seconds, found.times.table()

Kernels of our own are executed by the host model, which counts their time; operators of the vendor's library
are timed by a roofline of the hardware (`uir_tvm.hardware.library_costs`).
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import tvm_ffi

from ..errors import ArtifactError
from ..hardware.library_costs import library_time
from ..igraph.dtypes import bytes_of, from_tvm
from ..igraph.nodes import HardwareModel
from ..library.work import work_of

#: What an operator of the library is called among kernels; the pipe that counts the memory's own bytes.
LIBRARY, MEMORY = "library", "memory"
#: The pipes whose bytes go between global memory and the cores (Ascend C, BANG C): others' stay on the chip.
TRANSFERS = frozenset({"MTE2", "MTE3", "FIX", "IO"})


@attrs.frozen
class PipeTime:
    """What one pipe did in a launch, summed over cores: seconds at work, instructions, bytes moved."""

    busy_seconds: float = 0.0
    instructions: int = 0
    bytes: int = 0


@attrs.frozen
class Event:
    """One instruction on one pipe of a core; seconds from the start of its launch."""

    core: int
    pipe: str
    name: str
    line: int
    start: float
    end: float


@attrs.frozen
class LaunchTime:
    """One kernel, or one operator of a library.

    Attributes
    ----------
    entry : str
        The function that launched it, as the report of a model names kernels.
    kernel : str
        The kernel's own name; ``library`` of an operator of the library.
    seconds : float
        Modelled.
    bound : str
        The pipe, or the memory, that takes longest.
    pipes : mapping of str to PipeTime
    timeline : tuple of Event
        Empty unless it was asked for.
    computed : bool
        Whether it computed, too (``recording(values=False)``).
    assumed : bool
        Whether its scalar code read values that nobody computed: with true ones its time may be another.
    """

    entry: str
    kernel: str
    seconds: float
    bound: str
    pipes: Mapping[str, PipeTime]
    timeline: tuple[Event, ...] = ()
    computed: bool = True
    assumed: bool = False

    @property
    def library(self) -> bool:
        """Whether it is an operator of the library."""
        return self.kernel == LIBRARY

    @property
    def bytes(self) -> int:
        """Between global memory and the cores, those that a cache held included."""
        moved = sum(pipe.bytes for name, pipe in self.pipes.items() if name in TRANSFERS)
        return moved or self.memory_bytes

    @property
    def memory_bytes(self) -> int:
        """Those of them that the memory itself moved."""
        return self.pipes[MEMORY].bytes if MEMORY in self.pipes else 0

    @staticmethod
    def of(row: Mapping[str, Any], hardware: HardwareModel | None = None) -> LaunchTime | None:
        """From what the native code notes; None for what nothing is known of: an operator of a library."""
        if "attrs" in row:
            timed = _library_row(row, hardware)
            return None if timed is None else LaunchTime.of(timed)
        return LaunchTime(
            str(row["entry"]).removesuffix("_kernel"),
            str(row["kernel"]),
            float(row["seconds"]),
            str(row.get("bound", "")),
            {name: PipeTime(**_known(PipeTime, pipe)) for name, pipe in row.get("pipes", {}).items()},
            tuple(Event(**_known(Event, event)) for event in row.get("timeline", ())),
            bool(row.get("computed", True)),
            bool(row.get("assumed", False)),
        )


def _library_row(row: Mapping[str, Any], hardware: HardwareModel | None) -> dict[str, Any] | None:
    """A note of an operator of the library, with its time."""
    if hardware is None:
        return None
    dtype = str(row["dtype"])
    work = work_of(str(row["entry"]), str(row["attrs"]))
    time = library_time(hardware, dtype, work.operations, work.elements * bytes_of(from_tvm(dtype)))
    if time is None:
        return None
    return {"entry": f"library {row['entry']} {work.sizes}", "kernel": LIBRARY, **time.to_note()}


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in attrs.fields(kind)}
    return {key: value for key, value in row.items() if key in names}


@attrs.frozen
class Times:
    """The launches of a run, in order; all times are modelled, none is measured."""

    launches: tuple[LaunchTime, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all launches, one after the other."""
        return sum(launch.seconds for launch in self.launches)

    @property
    def library_seconds(self) -> float:
        """Of operators of the library."""
        return sum(launch.seconds for launch in self.launches if launch.library)

    @property
    def assumed_seconds(self) -> float:
        """Of launches whose time may be another with values that nobody computed."""
        return sum(launch.seconds for launch in self.launches if launch.assumed)

    @property
    def bytes(self) -> int:
        """Between global memory and the cores, of all launches."""
        return sum(launch.bytes for launch in self.launches)

    def table(self) -> list[dict[str, Any]]:
        """Rows of kernel, calls, modelled microseconds of all of them, their share, and what binds them."""
        entries: dict[str, list[LaunchTime]] = {}
        for launch in self.launches:
            entries.setdefault(launch.entry, []).append(launch)
        rows = [
            {
                "kernel": entry,
                "launches": len(group),
                "modelled us": round(1e6 * sum(one.seconds for one in group), 2),
                "moved KiB": round(sum(one.bytes for one in group) / 1024, 1),
                "share": f"{100 * sum(one.seconds for one in group) / (self.seconds or 1):.1f} %",
                "bound by": _binding(group),
            }
            for entry, group in entries.items()
        ]
        return sorted(rows, key=lambda row: -float(row["modelled us"]))

    def to_json(self) -> dict[str, Any]:
        """As plain data, without timelines."""
        launches = [
            attrs.asdict(launch, filter=lambda field, _: field.name != "timeline") for launch in self.launches
        ]
        return {
            "modelled_seconds": self.seconds,
            "library_seconds": self.library_seconds,
            "assumed_seconds": self.assumed_seconds,
            "bytes": self.bytes,
            "kernels": self.table(),
            "launches": launches,
        }

    def chrome_trace(self) -> dict[str, Any]:
        """As a trace for chrome://tracing or Perfetto: a process for each core, a thread for each pipe."""
        events: list[dict[str, Any]] = []
        start = 0.0
        for launch in self.launches:
            events.append(_span(launch.kernel, "launches", "kernels", start, launch.seconds, launch.bound))
            for event in launch.timeline:
                begin, length = start + event.start, event.end - event.start
                core = f"core {event.core}"
                events.append(_span(event.name, core, event.pipe, begin, length, f"line {event.line}"))
            start += launch.seconds
        return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"times": "modelled"}}

    def write_trace(self, path: pathlib.Path) -> pathlib.Path:
        """Write `chrome_trace`; returns the path.

        Raises
        ------
        ArtifactError
            The file cannot be written.
        """
        try:
            path.write_text(json.dumps(self.chrome_trace()))
        except OSError as error:
            raise ArtifactError(
                f"{path} cannot be written.", need=str(error), remedy="name another file"
            ) from error
        return path


def _binding(launches: Sequence[LaunchTime]) -> str:
    """What binds most of the time of some launches."""
    time: dict[str, float] = {}
    for launch in launches:
        time[launch.bound] = time.get(launch.bound, 0.0) + launch.seconds
    return max(time, key=lambda bound: time[bound])


def _span(name: str, process: str, thread: str, start: float, seconds: float, note: str) -> dict[str, Any]:
    times = {"ts": 1e6 * start, "dur": 1e6 * seconds}
    return {"name": name, "ph": "X", "pid": process, "tid": thread, **times, "args": {"note": note}}


#: Held while a thread records; the same thread would begin anew.
_RECORDING = threading.RLock()


@attrs.define
class Found:
    """Filled in when the recording ends."""

    times: Times = Times()


@contextlib.contextmanager
def recording(
    timeline: bool = False,
    hardware: HardwareModel | None = None,
    library_computes: bool = True,
    values: bool = True,
) -> Iterator[Found]:
    """Note the modelled times of all launches on host models inside, of all threads.

    There is one list of notes: threads that record take turns.

    Parameters
    ----------
    timeline : bool
        Also when every instruction starts and ends.
    hardware : HardwareModel, optional
        Whose library it is; without one, or where nothing is known of its library, operators of a library
        are not among the launches.
    library_computes : bool
        Without, operators of a library leave zeros behind: times do not depend on values, and large products
        take long on a CPU.
    values : bool
        Without, kernels whose time cannot depend on values take it and leave zeros behind, as operators of
        the library then do; the times are those of a run that computes. Kernels whose scalar code reads
        memory (at indices, say) compute all the same, and so do those that give whole numbers alone, which
        indices are made of. Results and state are of no use afterwards.
    """
    found = Found()
    with _RECORDING:
        begin = tvm_ffi.get_global_func("uir.runtime.modelled.begin")
        begin(timeline, values, library_computes and values)
        try:
            yield found
        finally:
            rows = json.loads(str(tvm_ffi.get_global_func("uir.runtime.modelled.end")()))
            launches = (LaunchTime.of(row, hardware) for row in rows)
            found.times = Times(tuple(launch for launch in launches if launch is not None))
