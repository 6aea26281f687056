# SPDX-License-Identifier: Apache-2.0
"""Partial results by ``rfactor``, where TVM's instruction alone refuses or forgets.

It knows the maximum from the lowest number of its dtype only, neither from -inf nor from that of the narrower
dtype of values that are computed wider, and fails where a block of the function has no loop; ``compute_at``
drops the predicate that bounds a ragged reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf
from typing import Any

import attrs
import ml_dtypes
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize, Schedule
from tvm_ffi.structural import structural_map
from uir_tvm.schedule.annotations import GROUP
from uir_tvm.schedule.blocks import leaf_blocks, prim_func
from uir_tvm.schedule.decisions import OWN, Decisions
from uir_tvm.schedule.make_tir import changed, guarded

#: The greatest numbers of floats that are computed with in fp32.
NARROW = frozenset(float(ml_dtypes.finfo(name).max) for name in ("float16", "bfloat16"))


@attrs.frozen
class Bound:
    """A sum of what some of a block's variables are bound to stays below an extent.

    Parameters
    ----------
    block : str
        The block's name.
    terms : tuple of (int, int)
        Which variable (as an index into the block's variables), and its factor.
    extent : int or expression
        The limit; of the function's sizes where they decide it.
    """

    block: str
    terms: tuple[tuple[int, int], ...]
    extent: Any

    def holds(self, values: Sequence[Any]) -> Any:
        """The predicate, of what the block's variables are bound to."""
        total = sum(values[at] * factor for at, factor in self.terms)
        return total < self.extent


@attrs.define
class Partials:
    """What is to be put right when the schedule is complete."""

    #: Identities that are no extreme of their dtype, by block.
    identities: dict[str, float]
    bounds: list[Bound] = attrs.field(factory=list)

    def make(self, sch: Schedule, block: Any, member: Any, size: int) -> str:
        """Partial results of a reduction for each iteration of a loop, in sram; the name of their block."""
        name = sch.get(block).name_hint
        partial = sch.rfactor(member, 0)
        for index in range(len(sch.get(partial).writes)):
            sch.set_scope(partial, index, "shared")
        sch.annotate(partial, GROUP, size)
        made = str(sch.get(partial).name_hint)
        if name in self.identities:
            self.identities[made] = self.identities[name]
        return made

    def restore(self, sch: Schedule, decisions: Decisions = OWN) -> Schedule:
        """The schedule with bounds and identities: itself if there are none, or of a rewritten function.

        No instruction makes the rewritten one: what was sampled before is fixed from here on.
        """
        if not self.bounds and not self.identities:
            return sch
        by_name = {b.block: b for b in self.bounds}

        def realize(node: SBlockRealize) -> SBlockRealize:
            bound = by_name.get(node.block.name_hint)
            if bound is None:
                return node
            values = list(node.iter_values)
            return guarded(node, bound.holds(values))

        func = structural_map(_without_regions(prim_func(sch)), (SBlockRealize, realize))
        return decisions.restart(_with_identities(func, self.identities))


def _without_regions(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function whose root says nothing of what it touches: TVM names buffers there that were inlined."""
    root = func.body
    return func.with_body(SBlockRealize([], root.predicate, changed(root.block, reads=[], writes=[])))


def give_loops(sch: Schedule) -> None:
    """Every block a loop."""
    for block in leaf_blocks(sch):
        if not sch.get_loops(block.rv):
            sch.add_unit_loop(block.rv)


def prepare_partials(sch: Schedule, decisions: Decisions = OWN) -> tuple[Schedule, Partials]:
    """A schedule in which ``rfactor`` applies, and what it changes to be put right at the end."""
    give_loops(sch)
    identities = {}
    for block in leaf_blocks(sch):
        start = block.stmt.init
        value = getattr(start, "value", None)
        if isinstance(value, tirx.FloatImm) and (isinf(value.value) or abs(value.value) in NARROW):
            identities[block.name] = float(value.value)
    if identities:
        finite = dict.fromkeys(identities, 0.0)
        sch = decisions.restart(_with_identities(prim_func(sch), finite, identities))
    return sch, Partials(identities)


def _with_identities(func: Any, wanted: dict[str, float], lowest: dict[str, float] | None = None) -> Any:
    """The function whose reductions start from these values, or from the finite extreme near ``lowest``."""

    def block(node: SBlock) -> SBlock:
        if node.name_hint not in wanted or node.init is None:
            return node
        store = node.init
        value: Any = wanted[node.name_hint]
        dtype = str(store.buffer.dtype)
        if lowest is None:
            value = tirx.const(value, dtype)
        else:
            value = tirx.min_value(dtype) if lowest[node.name_hint] < 0 else tirx.max_value(dtype)
        init = tirx.BufferStore(store.buffer, value, store.indices)
        return changed(node, init=init)

    return structural_map(func, (SBlock, block)) if wanted else func
