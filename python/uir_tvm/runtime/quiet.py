# SPDX-License-Identifier: Apache-2.0
"""Keep a known note of TVM's C++ off the user's terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

#: TVM warns once for every constant that it writes or reads, of a memory scope that is empty.
SCOPE_NOTE = re.compile(rb"Warning: Scope (Saving|Loaded):\s*$")


class _StandardError:
    """File descriptor 2, which threads share: the first to come turns it aside, the last to go turns it back.

    Were each thread to do both by itself, one would keep the other's file for the terminal, and put it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._terminal = -1
        self._held: IO[bytes] | None = None

    def hold(self) -> bool:
        """Collect what is written; False where there is no standard error, or no place to collect it in."""
        with self._lock:
            if not self._users and not self._turn_aside():
                return False
            self._users += 1
            return True

    def release(self) -> None:
        """Undo one `hold`; with the last one all but the notes appears."""
        with self._lock:
            self._users -= 1
            if not self._users:
                self._turn_back()

    def _turn_aside(self) -> bool:
        try:
            sys.stderr.flush()
            held = tempfile.TemporaryFile()  # `_turn_back` closes it
        except (OSError, ValueError, AttributeError):
            return False
        try:
            self._terminal = os.dup(2)
            os.dup2(held.fileno(), 2)
        except OSError:
            held.close()
            return False
        self._held = held
        return True

    def _turn_back(self) -> None:
        assert self._held is not None
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os.dup2(self._terminal, 2)
        with self._held as held:
            held.seek(0)
            rest = b"".join(line for line in held if not SCOPE_NOTE.search(line) and line.strip())
        with contextlib.suppress(OSError):
            os.write(self._terminal, rest)
        os.close(self._terminal)


_STANDARD_ERROR = _StandardError()


@contextlib.contextmanager
def without_scope_notes() -> Iterator[None]:
    """Drop the lines of `SCOPE_NOTE` from standard error; everything else appears at the end.

    Several threads may be inside: what they write appears when the last of them is done.
    """
    if not _STANDARD_ERROR.hold():
        yield
        return
    try:
        yield
    finally:
        _STANDARD_ERROR.release()
