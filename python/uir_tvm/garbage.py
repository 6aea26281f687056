# SPDX-License-Identifier: Apache-2.0
"""When Python looks for garbage: not while modules are imported, and once when something is compiled.

Python's collector looks through all objects whenever a quarter of them is new. A process with PyTorch, TVM
and a model has a million that stay, and a compilation makes many that go: a fifth of its time went there.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def unsearched() -> Iterator[None]:
    """Look for no garbage inside: for what makes none, as imports do."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def searched_at_the_end() -> Iterator[None]:
    """Look for garbage once, at the end, and only among what was made inside.

    Graphs are cycles that hold weights: these go then, and not at some later time. A program that turned the
    collector off, or arranged itself what it looks through (`gc.freeze`), finds that as it was.
    """
    if not gc.isenabled() or gc.get_freeze_count():
        yield
        return
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        gc.enable()
