# SPDX-License-Identifier: Apache-2.0
"""iGraph to CUDA C++: values get pointers of their own, phases are cut, and the printer writes one text."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tirx

from ...device.device_kernel import DeviceKernel
from ...errors import CodegenError
from ...igraph.nodes import IGraph
from ...igraph.rounds import with_rounds
from ...optimize.split import is_barrier, phases
from ...optimize.webs import rename
from ..source import check_kind, print_kernels

#: The printer, in src/codegen/cuda/print.cc.
PRINTER = "uir.codegen.cuda"
#: Attribute of a graph that asks for one launch whose blocks wait for each other.
COOPERATIVE = "cooperative"


def lower(graph: IGraph, prim_func: tirx.PrimFunc | None = None) -> DeviceKernel:
    """The iGraph as CUDA C++.

    Parameters
    ----------
    graph : IGraph
        A verified graph, for hardware of the kind ``cuda``.
    prim_func : PrimFunc, optional
        The function that it was extracted from; not needed.

    Returns
    -------
    DeviceKernel
        One kernel for each phase of the graph (see `uir_tvm.optimize.split`), in one source text; with the
        graph's attribute ``cooperative`` a single kernel, whose blocks may wait for each other.

    Raises
    ------
    CodegenError
        What the printer refuses; hardware of another kind; a ``sync.dram`` where no kernel can end.
    """
    check_kind(graph, "cuda", "h200")
    _check_block(graph)
    return print_kernels(graph, _parts(graph), PRINTER)


def _parts(graph: IGraph) -> Sequence[IGraph]:
    """The graphs that become kernels, each value with a pointer of its own, and none that nobody reads.

    Loops end where sizes say so.
    What only a later value of the same pointer kept alive shows when each has a name: nvcc would warn of it.
    """
    waits = any(is_barrier(iop) for iop, _ in graph.walk())
    parts = [graph] if waits and graph.attrs.get(COOPERATIVE, False) else phases(graph)
    return [with_rounds(rename(part)) for part in parts]


def _check_block(graph: IGraph) -> None:
    limit = int(graph.hardware.num_units)
    if not 1 <= int(graph.num_units) <= limit:
        raise CodegenError(
            f"A group of `{graph.name}` has {graph.num_units} units.",
            need=f"a block of {32 * int(graph.num_units)} threads",
            limit=f"{limit} warps in a block",
            remedy=f"schedule it with map_to_units(..., num_units={limit})",
        )
