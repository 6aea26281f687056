# SPDX-License-Identifier: Apache-2.0
"""A corpus of valid iGraphs: what recipes make of operators, the kernels of models, and texts by hand.

Analyses and passes are held against all of it: whatever says that one of these graphs is at fault is wrong,
and whatever rewrites one of them must leave it valid and computing the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import by_hand, models, recipes, shared
from .entry import Entry

__all__ = ["Entry", "corpus"]


def corpus(full: bool = False) -> Iterator[Entry]:
    """Every graph of the corpus, in the same order each time.

    Parameters
    ----------
    full : bool
        Also the kernels of the test models (which takes minutes); they are built once per process.

    Yields
    ------
    Entry
        Names are unique; every graph passes the verifier and runs in the interpreter.
    """
    yield from by_hand.entries()
    yield from recipes.entries()
    yield from shared.entries()
    if full:
        yield from models.entries()
