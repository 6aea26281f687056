# SPDX-License-Identifier: Apache-2.0
"""When Python looks for garbage: not while modules are imported, and once when something is compiled.

Python's collector looks through all objects whenever a quarter of them is new. A process with PyTorch, TVM
and a model has a million that stay, and a compilation makes many that go: a fifth of its time went there.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import mmap
import pathlib
import time
from collections.abc import Iterator
from typing import TypeVar

Kept = TypeVar("Kept", bound=BaseException)

#: Bytes by which a process has to have grown for memory to be given back: that and taking it again take time.
WORTH = 64 << 20
#: Whether `searched_at_the_end` looks after the collector.
_inside = False
#: What the process had in memory when that began.
_resident = 0
#: How many objects `spare` froze; a program that freezes too has more.
_spared = 0
#: Python counts frozen objects one by one, some 20 ms of a million. What a program was found to have
#: arranged is taken to stay so for this many times as long as it took to find out.
TRUSTED = 100
#: Until when it is.
_arranged_until = 0.0


def without_frames(error: Kept) -> Kept:
    """An error to be kept: it holds no frames any more, whose variables hold what holds the error."""
    chain: BaseException | None = error
    while chain is not None:
        chain.__traceback__ = None
        chain = chain.__cause__ or chain.__context__
    return error


@contextlib.contextmanager
def unsearched() -> Iterator[None]:
    """Look for no garbage inside: for what makes none, as imports do, or little, as a kernel does."""
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
        mine = gc.get_freeze_count() <= _spared
        gc.freeze()
        _spared = gc.get_freeze_count() if mine else 0


@contextlib.contextmanager
def searched_at_the_end() -> Iterator[None]:
    """Look for garbage once, at the end, and only among what was made inside.

    Graphs are cycles that hold weights: these go then, and not at some later time. A program that turned the
    collector off, or arranged itself what it looks through (`gc.freeze`), finds that as it was.
    """
    global _inside, _spared, _resident
    if not gc.isenabled() or _arranged():
        yield
        return
    gc.disable()
    gc.freeze()
    _inside, _resident = True, resident()
    try:
        yield
    finally:
        search_now()
        _inside, _spared = False, 0
        gc.unfreeze()
        gc.enable()


def _arranged() -> bool:
    """Whether the program froze objects itself, or did so lately."""
    global _arranged_until
    start = time.monotonic()
    if start < _arranged_until:
        return True
    found = gc.get_freeze_count() > _spared
    if found:
        now = time.monotonic()
        _arranged_until = now + TRUSTED * (now - start)
    return found


def search_now() -> None:
    """Inside of `searched_at_the_end`, between two steps: give back the memory that the first used."""
    if not _inside:
        return
    gc.collect()
    if resident() - _resident < WORTH:
        return
    # of the C library of GNU; others give memory back by themselves, or not at all
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def resident() -> int:
    """Bytes of the process that are in memory; 0 where the system does not say it."""
    try:
        pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * mmap.PAGESIZE
