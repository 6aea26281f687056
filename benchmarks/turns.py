# SPDX-License-Identifier: Apache-2.0
"""Interleaved timing: every peer has a process of its own, and they take turns.

In one process the spinning thread pools of the peers keep each other from the cores, and the figures
are those of the fight.  Here a peer's process is stopped while it is not its turn; a turn is one call to
wake the pool, then timed calls for a fraction of a second.  All read their inputs from the same memory
(`shared_inputs.py`).  A peer that raises, whose process ends, or
that does not answer in time has failed: its reason is kept, and the others go on.
"""

from __future__ import annotations

import math
import pathlib
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from asked_process import Answers, AskedProcess, NoAnswer

#: Seconds of timed calls in one turn (at least one call).
TURN = 0.25
#: Seconds of a first call above which a peer is slow: its turn is one call, and it takes two turns in all.
#: No pool's waking time shows in such a call.
SLOW = 2.0
#: Seconds that a peer has until its first call has ended, and for an answer then.
READY, ANSWER = 1800.0, 120.0


def prepared(case: str, peer: str, threads: int, file: pathlib.Path) -> tuple[tuple[float, bool], Answers]:
    """A peer on a case, in its process: seconds until its first call had ended, if it is slow; answers.

    The inputs are those of a file (`SharedInputs`).
    """
    import torch
    from cases import build
    from runners import ASKED, RUNNERS, outputs
    from shared_inputs import mapped

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    start = time.perf_counter()
    module, own = build(case)
    thunk = (RUNNERS | ASKED)[peer](module, mapped(file, own))
    called = time.perf_counter()
    thunk()
    end = time.perf_counter()
    slow = end - called > SLOW
    return (end - start, slow), {"turn": partial(turn, thunk, slow), "outputs": lambda: outputs(thunk())}


def turn(thunk: Callable[[], Any], slow: bool) -> list[float]:
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
    """One peer on one case, in its own process; `wait` until it is prepared.

    Parameters
    ----------
    case, name : str
    threads : int
    prepare : callable
        What is done in the process (`prepared`, told its file).
    ready, answer : float
        Seconds that it has.

    Attributes
    ----------
    failed : str
        Why it has no figures; empty where it has.
    prepare : float
        Seconds until its first call had ended.
    times : list of float
        Seconds of calls.
    """

    def __init__(
        self,
        case: str,
        name: str,
        threads: int,
        *,
        prepare: Callable[[str, str, int], tuple[tuple[float, bool], Answers]],
        ready: float = READY,
        answer: float = ANSWER,
    ) -> None:
        self._process = AskedProcess(prepare, case, name, threads)
        self._ready, self._answer = ready, answer
        self.times: list[float] = []
        self.failed, self.prepare, self.slow = "", 0.0, False

    def wait(self) -> None:
        """Until it has prepared the case and run it once, or failed."""
        try:
            self.prepare, self.slow = self._process.first(self._ready)
        except NoAnswer as error:
            self.failed = str(error)

    def _ask(self, what: str) -> Any:
        """Its answer; None, and `failed`, where it fails."""
        try:
            return self._process.ask(self._answer, what)
        except NoAnswer as error:
            self.failed = str(error)
            return None

    def turn(self) -> None:
        """One turn."""
        self.times += self._ask("turn") or []

    @property
    def median(self) -> float:
        """Median seconds of a call."""
        return statistics.median(self.times)

    def error(self, expected: Sequence[np.ndarray]) -> float:
        """Largest difference of what a call now gives, relative to the largest value of each output.

        It is infinite where outputs are of another number, or of other shapes, and where there are none.
        """
        found = self._ask("outputs")
        if found is None or [each.shape for each in found] != [each.shape for each in expected]:
            return math.inf
        return max(map(difference, found, expected), default=0.0)

    def stop(self) -> None:
        """End the process."""
        self._process.stop()


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference relative to the largest value expected; infinite where it is no number."""
    if not expected.size:
        return 0.0
    scale = max(1e-30, float(np.abs(expected).max()))
    error = float(np.abs(found.astype("float64") - expected).max()) / scale
    return math.inf if math.isnan(error) else error


def take_turns(peers: Sequence[Peer], seconds: float) -> None:
    """Turns in order, at least two each, until the time is used up; none of peers that have failed."""
    end = time.perf_counter() + seconds * len(peers)
    rounds = 0
    while rounds < 2 or (time.perf_counter() < end and not all(p.failed or p.slow for p in peers)):
        for peer in peers:
            if not peer.failed and (rounds < 2 or not peer.slow):
                peer.turn()
        rounds += 1
