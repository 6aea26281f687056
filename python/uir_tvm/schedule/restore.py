# SPDX-License-Identifier: Apache-2.0
"""Predicates that ``compute_at`` forgets: it gives a block new loops, and drops what bounded its reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
from tvm import tirx
from tvm.s_tir import SBlockRealize, Schedule
from tvm_ffi.structural import structural_map

from .blocks import prim_func


@attrs.frozen
class Bound:
    """A sum of what some of a block's variables are bound to stays below an extent.

    Parameters
    ----------
    block : str
        The block's name.
    terms : tuple of (int, int)
        Which variable (as an index into the block's variables), and its factor.
    extent : int
        The limit.
    """

    block: str
    terms: tuple[tuple[int, int], ...]
    extent: int

    def holds(self, values: Sequence[Any]) -> Any:
        """The predicate, of what the block's variables are bound to."""
        total = sum((values[at] * factor for at, factor in self.terms[1:]), start=self._first(values))
        return total < self.extent

    def _first(self, values: Sequence[Any]) -> Any:
        at, factor = self.terms[0]
        return values[at] * factor


def restore(sch: Schedule, bounds: Sequence[Bound]) -> Schedule:
    """The schedule with these predicates; itself where there are none, else one of a rewritten function."""
    if not bounds:
        return sch
    by_name = {b.block: b for b in bounds}

    def realize(node: SBlockRealize) -> SBlockRealize:
        bound = by_name.get(node.block.name_hint)
        if bound is None:
            return node
        values = list(node.iter_values)
        inside = bound.holds(values)
        always = isinstance(node.predicate, tirx.IntImm) and node.predicate.value
        return SBlockRealize(values, inside if always else tirx.And(node.predicate, inside), node.block)

    return Schedule(structural_map(prim_func(sch), (SBlockRealize, realize)), debug_mask="none")
