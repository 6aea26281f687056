# SPDX-License-Identifier: Apache-2.0
"""Seconds of calls on a GPU by CUDA events, contenders in turn; on the host model by the clock."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

#: A measurement lasts at least this long, so that the events' resolution (0.5 us) does not matter.
BATCH_SECONDS = 0.02
ROUNDS = 15


@dataclass
class Timing:
    """What was measured of one contender.

    Parameters
    ----------
    seconds : list of float
        Of one call, one number a round.
    graph : bool
        Whether a captured graph was replayed; else the calls were launched one by one.
    """

    seconds: list[float] = field(default_factory=list)
    graph: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def to_json(self) -> dict[str, Any]:
        return {
            "median_us": self.median * 1e6,
            "min_us": min(self.seconds) * 1e6,
            "max_us": max(self.seconds) * 1e6,
            "graph": self.graph,
        }


@dataclass
class Turn:
    """One contender, ready: ``launch()`` does ``calls`` calls, on input sets in turn.

    ``finish`` waits for the last launch of what does not run on torch's stream; it is timed by the clock.
    """

    name: str
    launch: Callable[[], Any]
    calls: int
    graph: bool = False
    finish: Callable[[Any], Any] | None = None
    repeats: int = 1


def rotation(input_bytes: int, l2_bytes: int, memory_bytes: int) -> int:
    """How many input sets a case needs so that none is in the cache; at most 16, or a third of memory."""
    wanted = 1 + -(-3 * l2_bytes // max(1, input_bytes))
    return max(1, min(16, wanted, memory_bytes // (3 * max(1, input_bytes))))


def captured(calls: Sequence[Callable[[], Any]], stream_of: Callable[[Any], Any]) -> Callable[[], Any]:
    """All calls as one CUDA graph; what they return lives as long as the graph.

    Parameters
    ----------
    calls : sequence of callable
        Each was run before, so that nothing is compiled or allocated anew.
    stream_of : callable
        Makes torch's current stream that of another library, as a context.
    """
    graph = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(graph), stream_of(torch.cuda.current_stream()):
        for call in calls:
            kept.append(call())

    def replay() -> None:
        graph.replay()

    replay.kept = kept  # type: ignore[attr-defined]
    return replay


def events(launch: Callable[[], Any], repeats: int) -> float:
    """Seconds of ``repeats`` launches, by events around them."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        launch()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3


def clock(turn: Turn, repeats: int) -> float:
    """Seconds by the clock, until the last launch is done; the host prepares the next while the GPU works."""
    start = time.perf_counter()
    for _ in range(repeats):
        last = turn.launch()
    if turn.finish is not None:
        turn.finish(last)
    return time.perf_counter() - start


def interleaved(turns: Sequence[Turn], gpu: bool, rounds: int = ROUNDS) -> dict[str, Timing]:
    """Measure all contenders in turn, round after round, each round beginning with another.

    Drifts of clocks and temperature so meet all alike.
    """

    def seconds(turn: Turn, repeats: int) -> float:
        return events(turn.launch, repeats) if gpu and turn.finish is None else clock(turn, repeats)

    for turn in turns:
        seconds(turn, 1)
        once = max(seconds(turn, 1), 1e-7)
        turn.repeats = max(1, min(10000, round((BATCH_SECONDS if gpu else 0.0) / once)))
    timings = {turn.name: Timing(graph=turn.graph) for turn in turns}
    for number in range(rounds):
        shift = number % len(turns)
        for turn in (*turns[shift:], *turns[:shift]):
            timings[turn.name].seconds.append(seconds(turn, turn.repeats) / turn.repeats / turn.calls)
    return timings


def ceilings() -> dict[str, float]:
    """What this GPU reaches: bytes a second of a large copy (read and written), and of matrix products."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    copied = torch.empty_like(source)
    seconds = _median_of_five(lambda: copied.copy_(source), 10)
    found = {"copy_bytes_per_second": 2 * source.numel() / seconds}
    for dtype, repeats in ((torch.bfloat16, 10), (torch.float32, 2)):
        size = 8192
        a, b, out = (torch.randn(size, size, dtype=dtype, device="cuda") for _ in range(3))
        product = functools.partial(torch.mm, a, b, out=out)
        name = str(dtype).removeprefix("torch.")
        found[f"{name}_flops_per_second"] = 2 * size**3 / _median_of_five(product, repeats)
    return found


def _median_of_five(launch: Callable[[], Any], repeats: int) -> float:
    """Seconds of one launch; the first of six measurements warms up."""
    times = [events(launch, repeats) / repeats for _ in range(6)]
    return statistics.median(times[1:])
