# SPDX-License-Identifier: Apache-2.0
"""Every sync of a kernel, how often it runs, and the pair of accesses that needs it."""

from __future__ import annotations

import math
from typing import Any

import attrs

from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph
from ..igraph.text import print_iop, print_slice
from ..verify.access import Access
from ..verify.races import SyncNeed, sync_needs


@attrs.frozen
class SyncUse:
    """One sync.

    Attributes
    ----------
    position : int
        Its place among the iOps, in program order.
    iop : str
        Its text.
    scope : str
        ``reg``, ``sram`` or ``dram``.
    executions : int
        How often each unit runs it.
    needed : bool
        Whether a race opens without it.
    pointer, first, second : str
        The memory, and the two accesses that would race: what each does and where (empty where not needed).
    carried : str
        The loop from one iteration to the next of which they would; empty within one iteration.
    lower : str
        The scope that would do; empty where it is the one that it has.
    proved : bool
        False: whether they race was too much to decide.
    decided_by : str
        What decided it: ``intervals``, ``points`` or ``isl`` (see `verify.decide`).
    """

    position: int
    iop: str
    scope: str
    executions: int
    needed: bool
    pointer: str = ""
    first: str = ""
    second: str = ""
    carried: str = ""
    lower: str = ""
    proved: bool = True
    decided_by: str = ""


def syncs(graph: IGraph) -> tuple[SyncUse, ...]:
    """The syncs of a graph, in program order, each by what removing it (or lowering its scope) would open."""
    if not any(spec_of(iop).barrier for iop, _ in graph.walk()):
        return ()
    return tuple(_use(need) for need in sync_needs(graph))


def _use(need: SyncNeed) -> SyncUse:
    base: dict[str, Any] = {
        "position": int(need.position),
        "iop": print_iop(need.iop),
        "scope": str(need.iop.attrs["scope"]),
        "executions": math.prod(int(loop.extent) for loop in need.loops),
        "needed": need.race is not None,
    }
    if need.race is None:
        return SyncUse(**base)
    race = need.race
    return SyncUse(
        **base,
        pointer=str(race.pointer.name),
        first=_access(race.first),
        second=_access(race.second),
        carried=str(race.carried or ""),
        lower=str(need.lower or ""),
        proved=bool(race.proved),
        decided_by="" if race.rung is None else race.rung.value,
    )


def _access(access: Access) -> str:
    """``iOp 3 writes s[...]``: short enough for one line."""
    word = "reads" if access.kind == "read" else "writes"
    return f"iOp {access.position} ({access.iop.op}) {word} {print_slice(access.slice)}"
