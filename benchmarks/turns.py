# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing: every peer has a process of its own, and they take turns.

In one process the spinning thread pools of the peers keep each other from the cores, and the figures
are those of the fight.  Here a peer's process sleeps while it is not its turn; a turn is one call to
wake the pool, then timed calls for a fraction of a second.
"""

from __future__ import annotations

import math
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

#: Seconds of timed calls in one turn (at least one call).
TURN = 0.25
#: Seconds of a first call above which a peer is slow: its turn is one call, and it takes two turns in all.
#: No pool's waking time shows in such a call.
SLOW = 2.0


def _serve(link: Connection, case: str, peer: str, threads: int) -> None:
    """The process of one peer: prepare, then answer ``turn`` and ``outputs`` until told to stop."""
    import torch
    from cases import build
    from runners import ASKED, RUNNERS, outputs

    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            start = time.perf_counter()
            module, inputs = build(case)
            thunk = (RUNNERS | ASKED)[peer](module, inputs)
            called = time.perf_counter()
            thunk()
            slow = time.perf_counter() - called > SLOW
            link.send(("ready", time.perf_counter() - start, slow))
            while (asked := link.recv()) in {"turn", "outputs"}:
                link.send(_turn(thunk, slow) if asked == "turn" else outputs(thunk()))
    except Exception as error:  # whatever a peer raises becomes a cell of the table
        link.send(("failed", f"{type(error).__name__}: {_reason(str(error))}", False))


def _reason(text: str) -> str:
    """The line of a message that says what is wrong: compilers say first that they were called."""
    lines = text.splitlines() or [""]
    return next((line for line in lines if "error: " in line), lines[0])[:160]


def _turn(thunk: Callable[[], Any], slow: bool) -> list[float]:
    """Seconds of calls; no result is kept while the next is computed, whose memory it may have."""
    if not slow:
        thunk()
    times: list[float] = []
    end = time.perf_counter() + (0.0 if slow else TURN)
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        thunk()
        times.append(time.perf_counter() - start)
    return times


class Peer:
    """One peer on one case, in its own process; `wait` until it is prepared."""

    def __init__(self, case: str, name: str, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.link, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, case, name, threads), daemon=True)
        self.process.start()
        theirs.close()
        self.times: list[float] = []

    def wait(self) -> None:
        """Until it has prepared the case and run it once, or failed."""
        try:
            state, detail, self.slow = self.link.recv()
        except EOFError:
            state, detail, self.slow = "failed", "the process ended", False
        self.failed: str = detail if state == "failed" else ""
        self.prepare: float = 0.0 if self.failed else detail

    def turn(self) -> None:
        """One turn."""
        self.link.send("turn")
        self.times += self.link.recv()

    @property
    def median(self) -> float:
        """Median seconds of a call."""
        return statistics.median(self.times)

    def error(self, expected: Sequence[np.ndarray]) -> float:
        """Largest difference of what a call now gives, relative to the largest value of each output.

        It is infinite where outputs are of another number, or of other shapes.
        """
        self.link.send("outputs")
        found = self.link.recv()
        if [each.shape for each in found] != [each.shape for each in expected]:
            return math.inf
        return max(map(difference, found, expected), default=0.0)

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        self.process.join()


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference relative to the largest value expected; infinite where it is no number."""
    scale = max(1e-30, float(np.abs(expected).max()))
    error = float(np.abs(found.astype("float64") - expected).max()) / scale
    return math.inf if math.isnan(error) else error


def take_turns(peers: list[Peer], seconds: float) -> None:
    """Turns in order, at least two each, until the time is used up."""
    end = time.perf_counter() + seconds * len(peers)
    rounds = 0
    while rounds < 2 or time.perf_counter() < end:
        for peer in peers:
            if rounds < 2 or not peer.slow:
                peer.turn()
        rounds += 1
