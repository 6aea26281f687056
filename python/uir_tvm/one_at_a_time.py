# SPDX-License-Identifier: Apache-2.0
"""Threads compile one after the other.

TVM keeps every open ``relax.BlockBuilder`` in one list of the class, whoever's thread it is: two threads that
rewrite Relax functions take each other's builders.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Held while anything of ours rewrites a model; the thread that has it may take it again.
COMPILING = threading.RLock()


def one_at_a_time(function: Callable[P, R]) -> Callable[P, R]:
    """Let the function run in one thread at a time, together with all others that are marked so."""

    @functools.wraps(function)
    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        with COMPILING:
            return function(*args, **kwargs)

    return alone
