# SPDX-License-Identifier: Apache-2.0
"""What of a pipelined loop's body may run an iteration late: the stores, at the head of the next one.

A node of the body (an iOp, or a loop with all in it) may where it does nothing but move buffers that have
a place for every iteration in flight to dram, where no iOp behind it writes these buffers, and where nothing
but such nodes, and loads of which `staging` has proved that they may pass them, touches what they write.
"""

from __future__ import annotations

from typing import Any

from ..igraph.nodes import IOp, Loop, walk_body
from .staging import Stages


def late_nodes(loop: Loop, found: Stages) -> tuple[int, ...]:
    """Indices of the nodes of a loop's body that may run in the next iteration, before all else of it.

    Parameters
    ----------
    loop : Loop
        The loop as it was, before it was taken apart.
    found : Stages
        What `staging.stages_of` told apart; loads of it run ahead, and pass what is late by no more than they
        pass already: the load of iteration k stands behind the stores of iteration k - stages.
    """
    nodes = {
        k: [iop for iop, _ in walk_body([node])] for k, node in enumerate(loop.body) if k not in found.ahead
    }
    late: list[int] = []
    written: set[str] = set()  # by what stands behind
    for k in reversed(nodes):
        iops = [iop for iop in nodes[k] if iop.op != "sync"]
        if not iops:
            continue
        if all(_is_store(iop, found) and str(iop.sources[0].pointer.name) not in written for iop in iops):
            late.append(k)
        else:
            written |= {str(t.pointer.name) for iop in iops for t in iop.targets}
    stored = {str(iop.target.pointer.name) for k in late for iop in nodes[k] if iop.op != "sync"}
    others = [iop for k in nodes if k not in late for iop in nodes[k] if iop.op != "sync"]
    if any(_names(iop) & stored for iop in others):
        return ()
    return tuple(sorted(late))


def _is_store(iop: IOp, found: Stages) -> bool:
    if iop.op != "move" or iop.target.pointer.level != "dram":
        return False
    return str(iop.sources[0].pointer.name) in found.buffers


def _names(iop: Any) -> set[str]:
    return {str(piece.pointer.name) for piece in iop.slices()}
