# SPDX-License-Identifier: Apache-2.0
"""iGraph to Ascend C: phases are cut, and the printer writes one text."""

from __future__ import annotations

from tvm import tirx

from ...device.device_kernel import DeviceKernel
from ...errors import CodegenError
from ...igraph.iops import spec_of
from ...igraph.nodes import IGraph
from ...optimize import select
from ...optimize.split import phases
from ...verify.addresses import ADDRESSES
from ..source import check_kind, print_kernels

#: The printer, in src/codegen/ascend/print.cc.
PRINTER = "uir.codegen.ascend"
#: The passes without which nothing can be printed.
NEEDED = ("matrix_unit", "align_rows", "allocate")


def lower(graph: IGraph, prim_func: tirx.PrimFunc | None = None) -> DeviceKernel:
    """The iGraph as Ascend C.

    Parameters
    ----------
    graph : IGraph
        A verified graph, for hardware of the kind ``ascend``.  One without addresses in the UB, which no pass
        or not all of them went over, goes through those of `NEEDED` first.
    prim_func : PrimFunc, optional
        The function that it was extracted from; not needed.

    Returns
    -------
    DeviceKernel
        One kernel for each phase of the graph (see `uir_tvm.optimize.split`), in one source text.

    Raises
    ------
    CodegenError
        What the printer refuses; hardware of another kind; several units in a group, or a fixed number of
        groups that is more than the device has vector cores; a ``sync.dram`` where no kernel can end.
    """
    check_kind(graph, "ascend", "910b2")
    _check_blocks(graph)
    if ADDRESSES not in graph.attrs:
        for row in select(NEEDED):
            graph = row.run(graph)
    return print_kernels(graph, phases(graph), PRINTER)


def _check_blocks(graph: IGraph) -> None:
    """A block is a vector core, with products a cube core too; blocks beyond would wait for others.

    Where sizes decide the number of groups, the printer deals them to as many blocks as there are cores.
    """
    cores, kind = int(graph.hardware.num_groups), "vector"
    if any(spec_of(iop).is_product for iop, _ in graph.walk()):
        cores, kind = min(cores, int(graph.hardware.figures.get("aic_cores", cores))), "cube"
    fits = graph.groups is not None or 1 <= int(graph.num_groups) <= cores
    if int(graph.num_units) != 1 or not fits:
        raise CodegenError(
            f"`{graph.name}` runs on ({graph.num_groups}, {graph.num_units}) units.",
            need=f"groups of one unit, a {kind} core each",
            limit=f"{cores} {kind} cores of {graph.hardware.name}",
            remedy=f"schedule it with map_to_units(..., num_groups={cores}, num_units=1)",
        )
