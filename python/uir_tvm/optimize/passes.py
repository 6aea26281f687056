# SPDX-License-Identifier: Apache-2.0
"""The table of passes, in the order in which they run.

A pass is a module of this package with ``run(graph) -> IGraph`` that returns the same object where it
changes nothing.  A new pass is a file beside this one, one row here, and a golden pair of the tests: what it
does to a small graph.
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
        As users write it, and of the module of this package that holds it.
    reason : str
        What it is for, and why it stands where it does.
    fast_math : bool
        Whether ``run`` takes ``fast_math``: whether floats may be reassociated.
    reorders : bool
        Whether it adds sums up in another order, or rounds them once more, whatever ``fast_math`` says: what
        it makes agrees within the tolerance of sums (`verify.agreement.TOLERANCE`). Others keep every bit.
    """

    name: str
    reason: str
    fast_math: bool = False
    reorders: bool = False

    def load(self) -> ModuleType:
        """The module, imported at the first call."""
        return importlib.import_module(f"{__package__}.{self.name}")

    def run(self, graph: IGraph, fast_math: bool = False) -> IGraph:
        """What the pass makes of a graph; the same object where it changes nothing."""
        run = self.load().run
        return run(graph, fast_math=fast_math) if self.fast_math else run(graph)

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        return (self.load().__doc__ or "").strip().splitlines()[0]


#: What every extracted graph goes through, in order, before it is shown, compared, learned from or optimised:
#: for every target, whatever passes are chosen.
FIRST: tuple[Pass, ...] = (
    Pass(
        "dead",
        "before the others: a copy that nobody reads would ask for syncs, or for what no sync can give",
    ),
    Pass(
        "trim_bounds",
        "before fold_inits, which asks whether two slices are the same",
    ),
    Pass(
        "fold_inits",
        "while every value has a register of its own",
    ),
    Pass(
        "load_cse",
        "before syncs are placed: a load that goes needs none",
    ),
    Pass(
        "insert_sync",
        "before every other pass and target, to which a graph means what it means by its syncs",
    ),
)

#: Every pass that a target may run, in order.
PASSES: tuple[Pass, ...] = (
    Pass(
        "identity",
        "first, so that no later pass meets two names of one piece of memory",
    ),
    Pass(
        "end_loops",
        "before all that asks whether an operand is whole: bounds on every round would say that it is not",
    ),
    Pass(
        "end_joint_loops",
        "before all passes that masks would hinder, and those that look for what is masked alike",
    ),
    Pass(
        "simplify",
        "before load_cse and dead: what it makes cheaper leaves operands that nobody reads",
        fast_math=True,
    ),
    Pass(
        "load_cse",
        "equal loads become one before anything asks who reads a register",
    ),
    Pass(
        "store_load_forwarding",
        "before promote: what a register already holds needs no memory to be promoted",
    ),
    Pass(
        "promote",
        "temporary memory that is left between iOps of one unit or group comes closer to it",
    ),
    Pass(
        "fold_operands",
        "after promote, which brings operands closer; zero_pad_tiles wants products to read the tiles",
    ),
    Pass(
        "dead",
        "after the passes that leave iOps without readers, before those that ask for room",
    ),
    Pass(
        "zero_pad_tiles",
        "after fold_operands and dead: products alone read staged tiles; before peel_tails, since masks go",
    ),
    Pass(
        "turn",
        "after zero_pad_tiles, which settles what products read; before hoist, whose loads stand elsewhere",
    ),
    Pass(
        "deal_groups",
        "after turn, the last that looks at a group alone; before hoist and multibuffer, which gain by it",
    ),
    Pass(
        "numbers_first",
        "after deal_groups, which puts all of a group into a loop; before the passes that ask what is alive",
    ),
    Pass(
        "hoist",
        "after dead, so that nothing is hoisted that nobody reads",
    ),
    Pass(
        "peel_tails",
        "after hoist, which need not see two copies of a loop; masks would narrow what coalesce_moves makes",
    ),
    Pass(
        "align_rows",
        "after peel_tails, which makes the last slices; coalesce_moves would see rows without gaps as one",
    ),
    Pass(
        "coalesce_moves",
        "when it is settled which moves there are",
    ),
    Pass(
        "matrix_unit",
        "after fold_operands and peel_tails settle what products read; before multibuffer, which loads ahead",
        reorders=True,
    ),
    Pass(
        "fold_broadcast",
        "after hoist and matrix_unit: what is broadcast once stays so; split_live_ranges asks for room",
    ),
    Pass(
        "split_live_ranges",
        "before multibuffer, which loads ahead what has memory of its own; after all that may share operands",
    ),
    Pass(
        "multibuffer",
        "last to change which memory there is: its buffers take what room the others left",
    ),
    Pass(
        "insert_sync",
        "when every access stands at its place: what the passes made needless goes here",
    ),
    Pass(
        "allocate",
        "last: addresses depend on everything before",
    ),
)

BY_NAME = {row.name: row for row in PASSES} | {
    row.name: row for row in FIRST if row.name not in [other.name for other in PASSES]
}


#: What passes were called -> what they are called.
RENAMED = {
    "tidy": "simplify",
    "reuse": "load_cse",
    "elide": "store_load_forwarding",
    "operands": "fold_operands",
    "pad": "zero_pad_tiles",
    "tails": "peel_tails",
    "pitch": "align_rows",
    "widen": "coalesce_moves",
    "spread": "fold_broadcast",
    "separate": "split_live_ranges",
}


def select(names: Sequence[str] | None) -> tuple[Pass, ...]:
    """The rows of those names, in the order given; all rows where ``names`` is None.

    Raises
    ------
    PassError
        There is no such pass; the message lists what there is, or says the new name of an old one.
    """
    if names is None:
        return PASSES
    for name in names:
        if name in RENAMED:
            raise PassError(
                f"The pass '{name}' is called '{RENAMED[name]}'.",
                name=name,
                need=f"its new name, {RENAMED[name]}",
                remedy="see `uir passes`",
            )
        if name not in BY_NAME:
            raise PassError(
                f"There is no pass '{name}'.",
                name=name,
                need="of " + ", ".join(BY_NAME),
                remedy="see `uir passes`",
            )
    return tuple(BY_NAME[name] for name in names)
