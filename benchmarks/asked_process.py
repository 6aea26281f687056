# SPDX-License-Identifier: Apache-2.0
"""A process that answers what it is asked; whatever becomes of it, who asks is told why and goes on.

What runs in it may raise, end the process, or never answer: each is a `NoAnswer` for who asks.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

#: What a process may be asked for -> what answers.
Answers = Mapping[str, Callable[..., Any]]
#: Characters of a reason.
LONGEST = 160
#: Seconds that a process has to end by itself.
GRACE = 5.0


class NoAnswer(Exception):
    """Why a process gives no answer, and will give none."""


class AskedProcess:
    """A process of its own, which stands still while it is not asked.

    Parameters
    ----------
    prepare : callable
        ``prepare(*given)``, called in the process: what it says first, and its `Answers`.
    given : object
    """

    def __init__(self, prepare: Callable[..., tuple[Any, Answers]], *given: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._link, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, prepare, given), daemon=True)
        self._started = time.monotonic()
        self._process.start()
        theirs.close()

    def first(self, seconds: float) -> Any:
        """What it says first, within seconds since it was started; then it is stopped until it is asked.

        Raises
        ------
        NoAnswer
        """
        said = self._hear(seconds, max(0.0, self._started + seconds - time.monotonic()))
        self._signal(signal.SIGSTOP)
        return said

    def ask(self, seconds: float, what: str, *given: Any) -> Any:
        """What it answers within some seconds; it is ended where it does not.

        Afterwards it is stopped until it is asked again: threads of a pool look for work, some for long, and
        would take processors from whoever is asked next.

        Raises
        ------
        NoAnswer
        """
        self._signal(signal.SIGCONT)
        with contextlib.suppress(OSError):  # it has ended; what is heard says how
            self._link.send((what, *given))
        said = self._hear(seconds, seconds)
        self._signal(signal.SIGSTOP)
        return said

    def _signal(self, number: signal.Signals) -> None:
        """Tell it and what it has started; only it, where it has no group yet."""
        assert self._process.pid is not None
        if self._process.exitcode is not None:
            return
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _hear(self, limit: float, seconds: float) -> Any:
        try:
            if not self._link.poll(seconds):
                self.stop()
                raise NoAnswer(f"no answer within {limit:g} s")
            answered, said = self._link.recv()
        except (EOFError, OSError):
            raise NoAnswer(self._end()) from None
        if not answered:
            raise NoAnswer(said)
        return said

    def _end(self) -> str:
        """How it ended."""
        self._process.join(GRACE)
        code = self._process.exitcode
        if code is None:
            return "its process answers no more"
        if code < 0:
            return f"its process was ended by signal {-code} ({signal.strsignal(-code)})"
        return f"its process ended with {code}"

    def stop(self) -> None:
        """End it, and what it has started."""
        for each in (signal.SIGTERM, signal.SIGKILL):
            self._signal(each)
            self._signal(signal.SIGCONT)
            self._process.join(GRACE)
            if self._process.exitcode is not None:
                break


def _serve(link: Connection, prepare: Callable[..., tuple[Any, Answers]], given: tuple[Any, ...]) -> None:
    """Prepare, then answer until nobody asks."""
    os.setpgid(0, 0)  # an interrupt is for who asks, who ends this process with all that it has started
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        said, answers = prepare(*given)
        link.send((True, said))
        while True:
            asked, *given_now = link.recv()
            link.send((True, answers[asked](*given_now)))
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:  # whatever is raised becomes a cell of a table
        link.send((False, f"{type(error).__name__}: {reason(str(error))}"))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)


def reason(text: str) -> str:
    """The line of a message that says what is wrong: compilers say first that they were called."""
    lines = text.splitlines() or [""]
    return next((line for line in lines if "error: " in line), lines[0])[:LONGEST]
