# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in the processes that measure: each function is called in one before its first job.

What is planted concerns candidates alone, not the compiler's own schedules.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

from uir_tvm import pipeline

#: Decision of a candidate that goes wrong, and a value of it that does not.
SPARED = 1


def _instead(of: Callable[..., None]) -> None:
    """Let something happen before a given schedule is compiled."""
    stock = pipeline.compile_scheduled

    def compile_scheduled(*args: Any, **kwargs: Any) -> Any:
        of()
        return stock(*args, **kwargs)

    pipeline.compile_scheduled = compile_scheduled


def crash() -> None:
    """Candidates end their process, as a fault of native code does."""

    def end() -> None:
        print("last words", file=sys.stderr, flush=True)
        os.abort()

    _instead(end)


def hang() -> None:
    """Candidates never end."""
    _instead(lambda: time.sleep(3600))


def broken_import() -> None:
    """The process does not become ready."""
    raise ImportError("planted")
