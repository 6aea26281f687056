# SPDX-License-Identifier: Apache-2.0
"""Algebraic tidying: iOps that compute what is already there, or what a cheaper one gives.

Before::

    unary.muls y, x [1.0];  unary.neg z, y;  unary.neg z, z;  binary.add z, z, c      (c filled with 2.0)

After::

    move y, x;  unary.neg z, x;  move z, x;  unary.adds z, x [2.0]

Every bit of every result stays, unless ``fast_math`` is asked for: `tidy_rules.RULES` and `tidy_fast.RULES`
are the tables of rules with the reason of each.  What is no longer read stays where it is; the pass `dead`
takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, Loop
from . import simplify_fast_math, simplify_rules
from .made_values import Definitions
from .simplify_site import Rule, Site, same_slice
from .slices import may_meet, place

#: Walks after which no further rule is tried; each rule makes an iOp cheaper, so that few ever run.
MAX_ROUNDS = 16


def run(graph: IGraph, fast_math: bool = False) -> IGraph:
    """The graph with every rule applied until none has anything to say.

    Parameters
    ----------
    graph : IGraph
        Any verified graph.
    fast_math : bool
        Whether rules apply that are exact in real arithmetic only.

    Returns
    -------
    IGraph
        ``graph`` itself where nothing changes.
    """
    rules = (*simplify_rules.RULES, *simplify_fast_math.RULES) if fast_math else simplify_rules.RULES
    for _ in range(MAX_ROUNDS):
        walk = _SimplifyWalk(rules)
        body = walk.body(graph.body, Definitions())
        if not walk.changed:
            break
        graph = graph.replace(body=body)
    return graph


class _SimplifyWalk:
    """One walk of the loop tree."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = rules
        self.changed = False

    def body(self, nodes: Sequence[Any], definitions: Definitions) -> list[Any]:
        """The nodes rewritten; ``definitions`` is left as it holds after them."""
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, Loop):
                inner = self.body(node.body, definitions.inside(node.body))
                definitions.leave(node.body)
                if inner:
                    out.append(Loop(node.var, node.extent, inner, node.attrs))
                continue
            iop = self._rewritten(node, definitions)
            if _copies_itself(iop):
                self.changed = True
                continue
            definitions.pass_by(iop)
            out.append(iop)
        return out

    def _rewritten(self, iop: IOp, definitions: Definitions) -> IOp:
        site = Site(iop, definitions)
        for rule in self.rules:
            new = rule.at(site)
            if new is not None and _keeps_order(iop, new):
                self.changed = True
                return self._rewritten(new, definitions)
        return iop


def _copies_itself(iop: IOp) -> bool:
    return spec_of(iop).copies and "pad" not in iop.attrs and place(iop.target) == place(iop.sources[0])


def _keeps_order(old: IOp, new: IOp) -> bool:
    """Whether no source that the rule brought in is overwritten by the target while it is still read."""
    for source in new.sources:
        if any(same_slice(source, s) for s in old.sources) or not may_meet(new.target, source):
            continue
        if not spec_of(new).elementwise or place(new.target) != place(source):
            return False
    return True
