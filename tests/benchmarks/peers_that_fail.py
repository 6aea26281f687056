# SPDX-License-Identifier: Apache-2.0
"""Peers of a benchmark that fail in the ways in which one can, at the point that their name says."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import numpy as np

#: What every peer should compute.
RIGHT = np.arange(6.0).reshape(2, 3)


def _raise() -> None:
    raise ValueError("a compiler says\nerror: that it cannot\nand more")


def _segmentation() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


#: What happens -> how.
FAILURES: dict[str, Callable[[], Any]] = {
    "raises": _raise,
    "crashes": _segmentation,
    "leaves": lambda: os._exit(7),
    "hangs": lambda: time.sleep(1000),
    "hangs deaf": lambda: (signal.signal(signal.SIGTERM, signal.SIG_IGN), time.sleep(1000)),
    "waits for a program": lambda: subprocess.run(["sleep", "1000"], check=True),
}


def prepared(case: str, peer: str, threads: int) -> tuple[tuple[float, bool], dict[str, Callable[..., Any]]]:
    """Stands for `turns.prepared`; a peer is called "well", "wrong", or "WHAT happens at WHEN"."""
    happens, _, when = peer.partition(" at ")

    def answer(asked: str) -> Any:
        if asked == when:
            FAILURES[happens]()
        if asked == "outputs":
            return [RIGHT + (1.0 if happens == "wrong" else 0.0)]
        return [0.001, 0.002, 0.003]

    answer("start")
    return (0.5, False), {asked: functools.partial(answer, asked) for asked in ("turn", "outputs")}
