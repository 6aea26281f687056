# SPDX-License-Identifier: Apache-2.0
"""From what extraction gives to a graph that keeps every rule: through the first rows of the table."""

from __future__ import annotations

import time
from functools import partial

from ..errors import ExtractionError, PassError, VerifyError
from ..igraph.nodes import IGraph
from ..verify import ALL, verify
from .optimize import Optimized, PassRecord, ran
from .passes import FIRST

#: Rules that hold once syncs stand: units race without, and what shares sram by turns is told apart by them.
ORDERED = ("race", "capacity")

_verify_unordered = partial(verify, rules=[rule for rule in ALL if rule not in ORDERED])


def completed(graph: IGraph, *, check: bool = True) -> IGraph:
    """The graph that `complete` makes, without the steps.

    Raises
    ------
    ExtractionError, VerifyError
        See `complete`.
    """
    return complete(graph, check=check).graph


def complete(graph: IGraph, *, check: bool = True) -> Optimized:
    """The graph without what nobody reads, and with the syncs that it needs; a step per row of `FIRST`.

    Parameters
    ----------
    graph : IGraph
        As `extract` gives it: units that share memory follow the order of its iOps.
    check : bool
        Whether the graph is verified, and again after each row that changes it.

    Raises
    ------
    ExtractionError
        A unit reads in reg, or before it is written, what another unit computes; units write one element
        within one iOp, which no sync can order.
    VerifyError
        The graph breaks another rule.
    """
    if check:
        _verify_extracted(graph)
    steps: list[PassRecord] = []
    for row in FIRST:
        start = time.perf_counter()
        try:
            made = ran(row, graph, check=_verify_unordered if check else None)
        except PassError as error:
            fault = error.__cause__
            if row.name != "insert_sync" or not isinstance(fault, VerifyError):
                raise
            raise ExtractionError(
                "Units write what they share, and no sync can order them. " + fault.what,
                where=fault.where,
                need="a part of the buffer for each unit, or one unit that writes it",
                remedy="share the loop over what is written (sch.group_share), or keep the buffer in reg",
            ) from fault
        steps.append(PassRecord(row.name, graph, made, time.perf_counter() - start))
        graph = made
    if check:
        verify(graph)
    return Optimized(graph, tuple(steps))


def _verify_extracted(graph: IGraph) -> None:
    try:
        _verify_unordered(graph)
    except VerifyError as fault:
        if fault.rule != "uninitialised" or int(graph.num_units) == 1:
            raise
        raise ExtractionError(
            "A unit reads what only another unit computes, in reg or before it is there: " + fault.what,
            where=fault.where,
            need="values that cross units in sram, or computed by every unit that reads them",
            remedy='move the buffer with move_to_hierarchy(..., "sram"), share its reader by the same '
            "loop, or use group_reduce and group_broadcast",
        ) from fault
