# SPDX-License-Identifier: Apache-2.0
"""iGraph to CUDA C++: values get pointers of their own, phases are cut, and the printer writes one text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tvm import tirx

from ...errors import CodegenError
from ...igraph.nodes import IGraph
from ...optimize import dead
from ...optimize.split import is_barrier, phases
from ..device_kernel import DeviceKernel
from ..printer import print_source
from ..webs import rename

#: The printer, in src/codegen/cuda.cc.
PRINTER = "uir.codegen.cuda"
#: Attribute of a graph that asks for one launch whose blocks wait for each other.
COOPERATIVE = "cooperative"


#: Words that name no kernel: those of C++17 (the standard's table of keywords), and `main`.
RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t class "
    "compl const const_cast constexpr continue decltype default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if inline int long main mutable namespace new "
    "noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast "
    "return short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq".split()
)


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
    hardware = graph.hardware
    if hardware.kind != "cuda":
        raise CodegenError(
            f"The graph `{graph.name}` is for {hardware.name}, a {hardware.kind}.",
            need="a hardware model of kind cuda",
            remedy='schedule it for one: uir_tvm.hardware.get("h200", "cuda")',
        )
    _check_block(graph)
    return DeviceKernel.of(graph, print_source(PRINTER, _parts(graph), identifier(str(graph.name))))


def _parts(graph: IGraph) -> Sequence[IGraph]:
    """The graphs that become kernels, each value with a pointer of its own, and none that nobody reads.

    What only a later value of the same pointer kept alive shows when each has a name: nvcc would warn of it.
    """
    waits = any(is_barrier(iop) for iop, _ in graph.walk())
    parts = [graph] if waits and graph.attrs.get(COOPERATIVE, False) else phases(graph)
    return [dead.run(rename(part)) for part in parts]


def _check_block(graph: IGraph) -> None:
    limit = int(graph.hardware.num_units)
    if not 1 <= int(graph.num_units) <= limit:
        raise CodegenError(
            f"A group of `{graph.name}` has {graph.num_units} units.",
            need=f"a block of {32 * int(graph.num_units)} threads",
            limit=f"{limit} warps in a block",
            remedy=f"schedule it with map_to_units(..., num_units={limit})",
        )


def identifier(name: str) -> str:
    """A name as one of C++."""
    legal = re.sub(r"\W", "_", name, flags=re.ASCII)
    free = legal and not legal[0].isdigit() and legal not in RESERVED
    return legal if free else f"kernel_{legal}"
