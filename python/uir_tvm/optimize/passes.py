# SPDX-License-Identifier: Apache-2.0
"""The table of passes, in the order in which they run.

A pass is a module of this package with ``run(graph) -> IGraph`` that returns the same object where it
changes nothing, and two texts, ``BEFORE`` and ``AFTER``: what it does to a small graph.  A new pass is a
file beside this one and one row here.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

import attrs

from ..errors import PassError
from ..igraph import IGraph


@attrs.frozen
class Pass:
    """One row.

    Parameters
    ----------
    name : str
        As users write it.
    module : str
        The module of this package that holds it.
    reason : str
        What it is for, and why it stands where it does.
    fast_math : bool
        Whether ``run`` takes ``fast_math``: whether floats may be reassociated.
    """

    name: str
    module: str
    reason: str
    fast_math: bool = False

    def load(self) -> ModuleType:
        """The module, imported at the first call."""
        return importlib.import_module(f"{__package__}.{self.module}")

    def run(self, graph: IGraph, fast_math: bool = False) -> IGraph:
        """What the pass makes of a graph; the same object where it changes nothing."""
        run = self.load().run
        return run(graph, fast_math=fast_math) if self.fast_math else run(graph)

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (self.load().__doc__ or "").strip().splitlines()[0]


#: Every pass in order.
PASSES: tuple[Pass, ...] = (
    Pass(
        "identity",
        "identity",
        "first, so that no later pass meets two names of one piece of memory",
    ),
    Pass(
        "tidy",
        "tidy",
        "before reuse and dead: what it makes cheaper leaves operands that nobody reads",
        fast_math=True,
    ),
    Pass(
        "reuse",
        "reuse",
        "equal loads become one before anything asks who reads a register",
    ),
    Pass(
        "elide",
        "elide",
        "before promote: what a register already holds needs no memory to be promoted",
    ),
    Pass(
        "promote",
        "promote",
        "temporary memory that is left between iOps of one unit or group comes closer to it",
    ),
    Pass(
        "operands",
        "operands",
        "after promote, which brings operands closer; before pad, which wants contractions to read the tiles",
    ),
    Pass(
        "dead",
        "dead",
        "after the passes that leave iOps without readers, before those that ask for room",
    ),
    Pass(
        "pad",
        "pad",
        "after operands and dead: then contractions alone read staged tiles; before tails, since masks go",
    ),
    Pass(
        "turn",
        "turn",
        "after pad, since then it is settled what products read; before hoist, whose loads stand elsewhere",
    ),
    Pass(
        "hoist",
        "hoist",
        "after dead, so that nothing is hoisted that nobody reads",
    ),
    Pass(
        "tails",
        "tails",
        "after hoist, which need not hoist from two copies of a loop; before widen, which masks would narrow",
    ),
    Pass(
        "pitch",
        "pitch",
        "after tails, which makes the last slices; before widen, which would see rows without gaps as one",
    ),
    Pass(
        "widen",
        "widen",
        "when it is settled which moves there are",
    ),
    Pass(
        "matrix_unit",
        "matrix_unit",
        "after operands and tails, which settle what products read; before multibuffer, which may load ahead",
    ),
    Pass(
        "spread",
        "spread",
        "after hoist and matrix_unit, so that what is broadcast once stays so; before separate asks for room",
    ),
    Pass(
        "separate",
        "separate",
        "before multibuffer, which loads ahead what has memory of its own; after all that may share operands",
    ),
    Pass(
        "multibuffer",
        "multibuffer",
        "last to change which memory there is: its buffers take what room the others left",
    ),
    Pass(
        "insert_sync",
        "insert_sync",
        "when every access stands at its place: what the passes made needless goes here",
    ),
    Pass(
        "allocate",
        "allocate",
        "last: addresses depend on everything before",
    ),
)

BY_NAME = {row.name: row for row in PASSES}


def select(names: Sequence[str] | None) -> tuple[Pass, ...]:
    """The rows of those names, in the order given; all rows where ``names`` is None.

    Raises
    ------
    PassError
        There is no such pass; the message lists what there is.
    """
    if names is None:
        return PASSES
    for name in names:
        if name not in BY_NAME:
            raise PassError(
                f"There is no pass '{name}'.",
                name=name,
                need="of " + ", ".join(BY_NAME),
                remedy="see `uir passes`",
            )
    return tuple(BY_NAME[name] for name in names)
