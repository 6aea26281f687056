# SPDX-License-Identifier: Apache-2.0
"""What of a pipelined loop's body may run an iteration late, or two: the stores, at the head of later ones.

A node of the body (an iOp, or a loop with all in it) may where it does nothing but move buffers that have
a place for every iteration in flight to dram, where no iOp behind it writes these buffers, and where nothing
but such nodes, and loads of which `loads_ahead` has proved that they may pass them, touches what they write.

Results that go to dram by way of sram take two such steps where copies on chip have a stage of their own:
from reg to sram an iteration late, from there to dram another one later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..igraph.iops import spec_of
from ..igraph.nodes import IOp, Loop, walk_body
from .loads_ahead import Stages

#: The iOps of a node of the body by its index; syncs are none.
Nodes = Mapping[int, Sequence[IOp]]


@attrs.frozen
class Late:
    """What runs behind.

    Attributes
    ----------
    once, twice : tuple of int
        Indices of the nodes of the body that run one iteration late, and two.
    buffers : tuple of str
        Pointers that need a place for every iteration in flight, beyond those of `Stages`.
    """

    once: tuple[int, ...] = ()
    twice: tuple[int, ...] = ()
    buffers: tuple[str, ...] = ()


def late_nodes(loop: Loop, found: Stages) -> Late:
    """What of a loop's body may run in later iterations, before all else of them.

    Parameters
    ----------
    loop : Loop
        The loop as it was, before it was taken apart.
    found : Stages
        What `loads_ahead.stages_of` told apart; loads of it run ahead, and pass what is late by no more than
        they pass already.  Where it was asked for copies on chip, stores may be late twice.
    """
    nodes = {
        k: [iop for iop, _ in walk_body([node]) if not spec_of(iop).barrier]
        for k, node in enumerate(loop.body)
        if k not in found.ahead and k not in found.onward
    }
    nodes = {k: iops for k, iops in nodes.items() if iops}
    early = {
        _name(piece)
        for k in (*found.ahead, *found.onward)
        for iop, _ in walk_body([loop.body[k]])
        for piece in iop.slices()
    }
    shared = _left_in_sram(nodes, found) - early if found.on_chip else set()
    while True:
        made = _of(nodes, found, shared)
        if not isinstance(made, set):
            break
        shared -= made
    stored = {k: _written(nodes[k]) for k in (*made.once, *made.twice)}
    others = {_name(s) for k in nodes if k not in stored for iop in nodes[k] for s in iop.slices()}
    if any(names & others for names in stored.values()):
        return Late()
    return made


def _of(nodes: Nodes, found: Stages, shared: set[str]) -> Late | set[str]:
    """What is late if these pointers of sram are left to stores alone; or which of them are not."""
    twice = [k for k in nodes if all(_is_store(iop) and _name(iop.sources[0]) in shared for iop in nodes[k])]
    once: list[int] = []
    behind: set[str] = set()  # written by what stands behind
    for k in reversed(list(nodes)):
        if k in twice:
            continue
        if all(_is_late(iop, found, shared) and _name(iop.sources[0]) not in behind for iop in nodes[k]):
            once.append(k)
        else:
            behind |= _written(nodes[k])
    brought = {_name(iop.target) for k in once for iop in nodes[k]} & shared
    sent = {_name(iop.sources[0]) for k in twice for iop in nodes[k]}
    elsewhere = {
        _name(s) for k in nodes if k not in once and k not in twice for iop in nodes[k] for s in iop.slices()
    }
    # stores of both kinds to one pointer would change their order
    for k in twice:
        if _written(nodes[k]) & {_name(iop.target) for j in once for iop in nodes[j]}:
            elsewhere |= sent
    wrong = (shared - (brought & sent)) | (shared & elsewhere)
    if wrong:
        return wrong
    sources = {_name(iop.sources[0]) for k in once for iop in nodes[k]} | sent
    return Late(tuple(sorted(once)), tuple(twice), tuple(sorted(sources - set(found.buffers))))


def _left_in_sram(nodes: Nodes, found: Stages) -> set[str]:
    """Pointers of sram that moves of the loop store to dram."""
    moved = (iop.sources[0].pointer for iops in nodes.values() for iop in iops if _is_store(iop))
    return {str(p.name) for p in moved if p.level == "sram" and str(p.name) in found.private}


def _is_late(iop: IOp, found: Stages, shared: set[str]) -> bool:
    """Whether an iOp stores to dram, or leaves in sram what is stored from there."""
    if not spec_of(iop).copies:
        return False
    if _is_store(iop):
        return _name(iop.sources[0]) in found.buffers
    source = iop.sources[0].pointer
    return _name(iop.target) in shared and source.level == "reg" and str(source.name) in found.private


def _is_store(iop: IOp) -> bool:
    return spec_of(iop).copies and iop.target.pointer.level == "dram"


def _written(iops: Sequence[IOp]) -> set[str]:
    return {_name(t) for iop in iops for t in iop.targets}


def _name(piece: Any) -> str:
    return str(piece.pointer.name)
