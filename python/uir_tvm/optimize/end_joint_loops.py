# SPDX-License-Identifier: Apache-2.0
"""Loops end where nothing is left to do, also where units of a group meet or loads run ahead.

Before::

    for k in 8 [pipeline=2] {
      move.dram.sram s[..; rows :16*(pid / 4) - 4*k + 16], a[..; rows :16*(pid / 4) - 4*k + 16]
      sync.sram s, s
      contract t[..; rows :16*(pid / 4) - 4*k + 16], r, s[..]
    }

After::

    for k in 8 [pipeline=2, rounds=4*(pid / 4) + 4] {
      move.dram.sram s[..], a[..; rows :16*(pid / 4) - 4*k + 16] [pad=0]
      sync.sram s, s
      contract t[..], r, s[..]
    }

What says no more than that a round is one of those is no mask of the body any more.  All units of a group
have as many rounds, at least one.  What is in dram keeps its bounds: loads of a loop that asks for `pipeline`
run ahead of the rounds that use them, so that the last ones have nothing to load.

Exact: a round that is left out would have written nothing.
"""

from __future__ import annotations

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, Loop
from ..igraph.rounds import ended
from .multibuffer import PIPELINE


def run(graph: IGraph) -> IGraph:
    """The graph whose loops with barriers, products or loads ahead end; itself where there is none."""
    return ended(graph, _is_joint)


def _is_joint(loop: Loop) -> bool:
    """Whether a printer could not end a loop: what is done in it is done together, or ahead."""
    own = [spec_of(node) for node in loop.body if isinstance(node, IOp)]
    return PIPELINE in loop.attrs or any(spec.barrier or spec.is_product for spec in own)
