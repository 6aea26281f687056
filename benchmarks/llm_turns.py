# SPDX-License-Identifier: Apache-2.0
"""Turns of language models, each in a process of its own that sleeps while it is not asked."""

from __future__ import annotations

import pathlib
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from asked_process import Answers, AskedProcess, NoAnswer
from llm_peers import PEERS, Model, some

#: Seconds of timed calls in one turn (at least one call).
TURN = 0.5
#: Calls of one token in a turn at least.
STEPS = 4
#: Seconds that a runtime has until it is ready, and for an answer then.
READY, ANSWER = 1800.0, 120.0


def _greedy(model: Model, tokens: list[int], count: int) -> list[int]:
    """The most likely tokens after some."""
    made: list[int] = []
    logits = model.run(tokens, 0)
    while len(made) < count:
        made.append(int(logits.argmax()))
        logits = model.run(made[-1:], len(tokens) + len(made) - 1)
    return made


def _fill(model: Model, count: int, chunk: int = 512) -> None:
    """Let the cache have so many tokens."""
    for place in range(0, count, chunk):
        model.run(some(min(chunk, count - place)), place)


def _point(kind: str, size: int) -> tuple[list[int], int]:
    """The tokens of a point, and their place: a prompt of a size, or a token behind a cache of it."""
    return (some(size), 0) if kind == "prefill" else ([7], size)


def _logits(model: Model, kind: str, size: int) -> np.ndarray:
    """What is timed, once, for its result."""
    return model.run(*_point(kind, size)).copy()


def _turn(model: Model, kind: str, size: int) -> list[float]:
    """Seconds of calls of a point; the first is not counted."""
    tokens, place = _point(kind, size)
    least = 1 if kind == "prefill" else STEPS
    model.run(tokens, place)
    times: list[float] = []
    end = time.perf_counter() + TURN
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter()
        model.run(tokens, place)
        times.append(time.perf_counter() - start)
    return times


#: What a process is asked for -> what answers of the model.
ASKED: dict[str, Callable[..., Any]] = {"greedy": _greedy, "fill": _fill, "logits": _logits, "turn": _turn}


def _prepared(name: str, file: pathlib.Path, room: int) -> tuple[tuple[float, int, int], Answers]:
    """A runtime in its process: seconds until its first answer, bytes of weights and of a token; answers."""
    start = time.perf_counter()
    model = PEERS[name](file, room)
    model.run([1, 2, 3], 0)
    seconds = time.perf_counter() - start
    return (seconds, model.weight_bytes, model.cache_bytes), {
        what: partial(answer, model) for what, answer in ASKED.items()
    }


class Runtime:
    """One runtime in a process of its own, which sleeps while it is not asked.

    Attributes
    ----------
    failed : str
        Why it has no figures; empty where it has.
    seconds : float
        Until its first answer.
    times : dict of (kind, size) to list of float
    """

    def __init__(self, name: str, file: pathlib.Path, room: int) -> None:
        self._process = AskedProcess(_prepared, name, file, room)
        self.times: dict[tuple[str, int], list[float]] = {}
        self.failed, self.seconds, self.weight_bytes, self.cache_bytes = "", 0.0, 0, 0
        try:
            self.seconds, self.weight_bytes, self.cache_bytes = self._process.first(READY)
        except NoAnswer as error:
            self.failed = str(error)

    def ask(self, what: str, *given: Any) -> Any:
        """The answer of one of `ASKED`; None, and `failed`, where it fails."""
        try:
            return self._process.ask(ANSWER, what, *given)
        except NoAnswer as error:
            self.failed = str(error)
            return None

    def turn(self, kind: str, size: int) -> None:
        """Times of one turn."""
        self.times.setdefault((kind, size), []).extend(self.ask("turn", kind, size) or [])

    def median(self, kind: str, size: int) -> float:
        """Median seconds of a call."""
        return statistics.median(self.times[kind, size])

    def read_bytes(self, kind: str, size: int) -> int:
        """What a call has to read at least: of one token, weights and its cache."""
        return self.weight_bytes + (self.cache_bytes * size if kind == "decode" else 0)

    def stop(self) -> None:
        """End the process."""
        self._process.stop()
