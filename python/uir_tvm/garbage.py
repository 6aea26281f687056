# SPDX-License-Identifier: Apache-2.0
"""When Python looks for garbage: not while modules are imported, and once when something is compiled.

Python's collector looks through all objects whenever a quarter of them is new. A process with PyTorch, TVM
and a model has a million that stay, and a compilation makes many that go: a fifth of its time went there.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator

#: Whether `searched_at_the_end` looks after the collector.
_inside = False
#: Whether what is frozen was frozen by `spare`.
_spared = False


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


def spare() -> None:
    """Let searches leave out all that is there by now, until something is compiled; where they take place."""
    global _spared
    if gc.isenabled():
        _spared = not gc.get_freeze_count()
        gc.freeze()


@contextlib.contextmanager
def searched_at_the_end() -> Iterator[None]:
    """Look for garbage once, at the end, and only among what was made inside.

    Graphs are cycles that hold weights: these go then, and not at some later time. A program that turned the
    collector off, or arranged itself what it looks through (`gc.freeze`), finds that as it was.
    """
    global _inside, _spared
    if not gc.isenabled() or (gc.get_freeze_count() and not _spared):
        yield
        return
    gc.disable()
    gc.freeze()
    _inside = True
    try:
        yield
    finally:
        search_now()
        _inside = _spared = False
        gc.unfreeze()
        gc.enable()


def search_now() -> None:
    """Inside of `searched_at_the_end`, between two steps: give back the memory that the first used."""
    if not _inside:
        return
    gc.collect()
    # of the C library of GNU; others give memory back by themselves, or not at all
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
