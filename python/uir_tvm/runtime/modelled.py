# SPDX-License-Identifier: Apache-2.0
"""What a run on a device's host model would have taken on the device, by the model's stated costs.

with modelled.recording() as found:
    exe(x)
found.times.seconds, found.times.table()
"""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import tvm_ffi

from ..errors import ArtifactError


@attrs.frozen
class Pipe:
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
class Launch:
    """One kernel, or one operator of a library.

    Attributes
    ----------
    entry : str
        The function that launched it, as the report of a model names kernels.
    kernel : str
        The kernel's own name.
    seconds : float
        Modelled.
    bound : str
        The pipe, or the memory, that takes longest.
    pipes : mapping of str to Pipe
    timeline : tuple of Event
        Empty unless it was asked for.
    """

    entry: str
    kernel: str
    seconds: float
    bound: str
    pipes: Mapping[str, Pipe]
    timeline: tuple[Event, ...] = ()

    @staticmethod
    def of(row: Mapping[str, Any]) -> Launch:
        """From what the native code notes."""
        return Launch(
            str(row["entry"]).removesuffix("_kernel"),
            str(row["kernel"]),
            float(row["seconds"]),
            str(row.get("bound", "")),
            {name: Pipe(**_known(Pipe, pipe)) for name, pipe in row.get("pipes", {}).items()},
            tuple(Event(**_known(Event, event)) for event in row.get("timeline", ())),
        )


def _known(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in attrs.fields(kind)}
    return {key: value for key, value in row.items() if key in names}


@attrs.frozen
class Times:
    """The launches of a run, in order; all times are modelled, none is measured."""

    launches: tuple[Launch, ...] = ()

    @property
    def seconds(self) -> float:
        """Of all launches, one after the other."""
        return sum(launch.seconds for launch in self.launches)

    def table(self) -> list[dict[str, Any]]:
        """Rows of kernel, calls, modelled microseconds of all of them, their share, and what binds them."""
        entries: dict[str, list[Launch]] = {}
        for launch in self.launches:
            entries.setdefault(launch.entry, []).append(launch)
        rows = [
            {
                "kernel": entry,
                "launches": len(group),
                "modelled us": round(1e6 * sum(one.seconds for one in group), 2),
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
        return {"modelled_seconds": self.seconds, "kernels": self.table(), "launches": launches}

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


def _binding(launches: Sequence[Launch]) -> str:
    """What binds most of the time of some launches."""
    time: dict[str, float] = {}
    for launch in launches:
        time[launch.bound] = time.get(launch.bound, 0.0) + launch.seconds
    return max(time, key=lambda bound: time[bound])


def _span(name: str, process: str, thread: str, start: float, seconds: float, note: str) -> dict[str, Any]:
    times = {"ts": 1e6 * start, "dur": 1e6 * seconds}
    return {"name": name, "ph": "X", "pid": process, "tid": thread, **times, "args": {"note": note}}


@attrs.define
class Found:
    """Filled in when the recording ends."""

    times: Times = Times()


@contextlib.contextmanager
def recording(timeline: bool = False) -> Iterator[Found]:
    """Note the modelled times of all launches on host models inside, of all threads.

    Parameters
    ----------
    timeline : bool
        Also when every instruction starts and ends.
    """
    found = Found()
    tvm_ffi.get_global_func("uir.runtime.modelled.begin")(timeline)
    try:
        yield found
    finally:
        rows = json.loads(str(tvm_ffi.get_global_func("uir.runtime.modelled.end")()))
        found.times = Times(tuple(Launch.of(row) for row in rows))
