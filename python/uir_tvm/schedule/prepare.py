# SPDX-License-Identifier: Apache-2.0
"""Bring a PrimFunc into the form that recipes start from.

Pure data movement and cheap producers are inlined; a result that is also read inside the function,
or that a reduction writes, is made in reg first and copied out by a block of its own, so that every
output block is elementwise and everything before it can be attached under its row loop.
"""

from __future__ import annotations

import math

from tvm.ir import TensorLoad
from tvm.s_tir import Schedule

from ..quantized import BY_PLACE
from .blocks import BlockInfo, collect, leaf_blocks, param_names
from .transaction import refused_by_tvm

#: A producer with at most this many arithmetic nodes may be computed again for every consumer.
CHEAP_FLOPS = 2
#: An expression is not inlined into one of more nodes: each use doubles the text.
MAX_FLOPS = 200


def prepare(sch: Schedule, any_size: bool = False) -> None:
    """Inline what costs nothing, then separate outputs from values (see the module's text).

    ``any_size``: also what is cheap and has another size than its only consumer (a half of a concatenation).
    """
    inline_producers(sch, any_size)
    separate_outputs(sch)


def inline_producers(sch: Schedule, any_size: bool = False) -> None:
    """Inline injective intermediates where nothing expensive is computed more often than before."""
    refused: set[str] = set()
    while True:
        outputs, blocks = param_names(sch), leaf_blocks(sch)
        candidates = [
            b
            for b in blocks
            if b.is_injective
            and b.name not in refused
            and not b.writes_any(outputs)
            and BY_PLACE not in dict(b.stmt.annotations)
        ]
        block = next((b for b in candidates if _worth_inlining(sch, b, blocks, any_size)), None)
        if block is None:
            return
        try:
            sch.compute_inline(block.rv)
        except Exception as error:
            if not refused_by_tvm(error):
                raise
            refused.add(block.name)


def inline_injective(sch: Schedule) -> None:
    """Inline every elementwise intermediate, whatever it costs: for recipes that write the function anew.

    Raises
    ------
    tvm.s_tir.schedule.ScheduleError
        TVM cannot inline one.
    """
    while True:
        outputs = param_names(sch)
        found = [b for b in leaf_blocks(sch) if b.is_injective and not set(b.writes) & outputs]
        if not found:
            return
        sch.compute_inline(found[0].rv)


def _worth_inlining(sch: Schedule, block: BlockInfo, blocks: list[BlockInfo], any_size: bool) -> bool:
    if block.is_copy:
        return True
    consumers = {sch.get(consumer).name_hint for consumer in sch.get_consumers(block.rv)}
    if not consumers:
        return False
    size = math.prod(block.extents)
    infos = [b for b in blocks if b.name in consumers]
    same_size = all(math.prod(b.extents) == size for b in infos)
    if not same_size:
        return any_size and len(infos) == 1 and not block.is_expensive and block.flops <= CHEAP_FLOPS
    if len(infos) == 1:
        # Extraction computes equal subexpressions once, so reading it twice costs text, not time.
        return infos[0].flops + 2 * block.flops <= MAX_FLOPS
    return not block.is_expensive and block.flops <= CHEAP_FLOPS


def separate_outputs(sch: Schedule) -> None:
    """Give every output that is reduced, or read inside the function, a reg copy of its own.

    A block that goes on from what its output holds keeps it: a copy would hold nothing before.
    """
    outputs = param_names(sch)
    for block in leaf_blocks(sch):
        written = [i for i, name in enumerate(block.writes) if name in outputs]
        consumers = list(sch.get_consumers(block.rv))
        if written and (block.is_reduction or consumers) and not _goes_on(block):
            for index in written:
                sch.cache_write(block.rv, index, "local", consumer_blocks=consumers or None)


def _goes_on(block: BlockInfo) -> bool:
    """Whether a block without an init reads what it writes."""
    loads = collect(block.stmt.body, TensorLoad)
    return block.stmt.init is None and any(load.source.name in block.writes for load in loads)
