# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C asks for an end; a second one does not ask."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

#: What asks for an end: Ctrl-C, and what a job scheduler or a shutting machine sends.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruptible:
    """A context in which the first signal is noted, and the second raises KeyboardInterrupt.

    Outside of the main thread, where Python handles no signals, nothing is noted.

    Attributes
    ----------
    signal : int
        That came; 0: none.
    """

    def __init__(self) -> None:
        self.signal = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruptible:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            raise KeyboardInterrupt
        self.signal = number
