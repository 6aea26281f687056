# SPDX-License-Identifier: Apache-2.0
"""The syncs between units.  What units hand each other must arrive, or the schedule is refused."""

from __future__ import annotations

from ..errors import ExtractionError, VerifyError
from ..igraph import IGraph


def synchronised(graph: IGraph) -> IGraph:
    """The graph with the syncs that it needs, where units share memory at all.

    Raises
    ------
    uir_tvm.errors.ExtractionError
        A unit reads in reg, or before it is written, what another unit computes; units write one element
        within one iOp, which no sync can order.
    """
    from ..optimize import insert_sync
    from ..verify import initialised
    from ..verify.access import Program

    shared = any(p.role == "inout" or (p.level != "reg" and not p.is_param) for p in graph.pointers)
    if graph.num_parallel == 1 or not (shared or _reads_results(graph)):
        return graph
    if graph.num_units > 1:
        for fault in initialised.check(Program(graph)):
            raise ExtractionError(
                "A unit reads what only another unit computes, in reg or before it is there: " + fault.what,
                where=fault.where,
                need="values that cross units in sram, or computed by every unit that reads them",
                remedy='move the buffer with move_to_hierarchy(..., "sram"), share its reader by the same '
                "loop, or use group_reduce and group_broadcast",
            )
    try:
        return insert_sync.run(graph)
    except VerifyError as error:
        raise ExtractionError(
            "Units write what they share, and no sync can order them. " + error.what,
            where=error.where,
            need="a part of the buffer for each unit, or one unit that writes it",
            remedy="share the loop over what is written (sch.group_share), or keep the buffer in reg",
        ) from error


def _reads_results(graph: IGraph) -> bool:
    """Whether what is written for the caller is read again, perhaps by another unit."""
    return any(piece.pointer.role == "out" for iop, _ in graph.walk() for piece in iop.sources)
