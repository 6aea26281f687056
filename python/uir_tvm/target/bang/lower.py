# SPDX-License-Identifier: Apache-2.0
"""iGraph to BANG C: phases are cut, and the printer writes one text."""

from __future__ import annotations

import math

from tvm import tirx

from ...device.device_kernel import DeviceKernel
from ...errors import CodegenError
from ...igraph.nodes import IGraph
from ...optimize import select
from ...optimize.split import phases
from ...verify.addresses import ADDRESSES
from ..source import check_kind, print_kernels

#: The printer, in src/codegen/bang/print.cc.
PRINTER = "uir.codegen.bang"
#: Version of cncc -> the first architecture that its public header does not have.
FIRST_UNKNOWN = {"3": 400}
#: The passes without which nothing can be printed.
NEEDED = ("allocate",)


def lower(graph: IGraph, prim_func: tirx.PrimFunc | None = None) -> DeviceKernel:
    """The iGraph as BANG C.

    Parameters
    ----------
    graph : IGraph
        A verified graph, for hardware of the kind ``bang``.  One without addresses in NRAM and SRAM goes
        through the passes of `NEEDED` first.
    prim_func : PrimFunc, optional
        The function that it was extracted from; not needed.

    Returns
    -------
    DeviceKernel
        One kernel for each phase of the graph (see `uir_tvm.optimize.split`), in one source text.

    Raises
    ------
    CodegenError
        What the printer refuses; hardware of another kind; groups of other than one unit or a whole cluster,
        or a fixed number of units that is more than the device has cores; a ``sync.dram`` where no kernel can
        end; an architecture that the version of cncc (the graph's attribute ``cncc``) does not know.
    """
    check_kind(graph, "bang", "mlu370-x8")
    _check_units(graph)
    _check_toolkit(graph)
    if ADDRESSES not in graph.attrs:
        for row in select(NEEDED):
            graph = row.run(graph)
    return print_kernels(graph, phases(graph), PRINTER)


def _check_toolkit(graph: IGraph) -> None:
    """The header of cncc 3 ends with the architectures 3xx."""
    arch, version = int(graph.hardware.figures["arch"]), str(graph.attrs.get("cncc", ""))
    if arch >= FIRST_UNKNOWN.get(version, math.inf):
        raise CodegenError(
            f"cncc {version} does not know {graph.hardware.name}, of the architecture {arch}.",
            where=str(graph.name),
            need=f"an architecture below {FIRST_UNKNOWN[version]}",
            remedy="take cncc 4 (--cncc 4)",
        )


def _check_units(graph: IGraph) -> None:
    """Groups are cores (a Block launch) or clusters (Union1); more than there are would wait their turn.

    Where sizes decide their number, the printer deals them to as many as there are.
    """
    groups, units = int(graph.num_groups), int(graph.num_units)
    cluster = int(graph.hardware.num_units)
    clusters = int(graph.hardware.num_groups)
    limit = clusters if units == cluster else clusters * cluster
    if units in (1, cluster) and (graph.groups is not None or 1 <= groups <= limit):
        return
    raise CodegenError(
        f"`{graph.name}` runs on ({groups}, {units}) units.",
        need=f"groups of one unit, a core each, or of {cluster}, a cluster each",
        limit=f"{clusters} clusters of {cluster} cores of {graph.hardware.name}",
        remedy=f"schedule it with map_to_units(..., num_groups={clusters * cluster}, num_units=1), or "
        f"num_groups={clusters}, num_units={cluster}",
    )
