# SPDX-License-Identifier: Apache-2.0
"""Compile an iGraph with uir-cpu and run it beside the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.hardware import get, with_instructions_of
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, Loop
from uir_tvm.igraph.dtypes import dtype_of, numpy_of
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.target.cpu.lower import lower

HOST = get("host")


def llvm_target() -> tvm.target.Target:
    """LLVM for the CPU that the tests run on."""
    return tvm.target.Target({"kind": "llvm", "mcpu": str(HOST.figures["mcpu"])})


def signature(graph: IGraph) -> tirx.PrimFunc:
    """An empty function with one flat buffer per parameter of the graph."""
    params = [tirx.decl_buffer((p.size,), dtype_of(p.dtype).tvm, name=p.name) for p in graph.params]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return empty.with_attr({"global_symbol": "kernel", "tirx.noalias": True})


def compiled(graph: IGraph) -> Any:
    """The executable of the graph's lowering; its function is ``kernel``."""
    graph = graph.replace(hardware=with_instructions_of(graph.hardware, HOST))
    with called_by_a_program():
        return tvm.compile(tvm.IRModule({"kernel": lower(graph, signature(graph))}), target=llvm_target())


def execute(graph: IGraph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs (inout and out) of the compiled graph."""
    remaining = iter(inputs)
    tensors, outputs = [], []
    for p in graph.params:
        if p.role == "out":
            array = np.zeros(p.size, numpy_of(p.dtype))
        else:
            array = next(remaining).reshape(-1)
        tensors.append(tvm.runtime.tensor(array))
        if p.role != "in":
            outputs.append(tensors[-1])
    compiled(graph)["kernel"](*tensors)
    return [t.numpy() for t in outputs]


def check(graph: IGraph, inputs: Sequence[np.ndarray], rtol: float = 1e-6, atol: float = 1e-6) -> None:
    """The compiled graph gives what the interpreter gives (exactly for types that are no floats)."""
    expected = run(graph, *inputs, allow_unwritten=True)
    for found, wanted in zip(execute(graph, inputs), expected, strict=True):
        wanted = wanted.reshape(-1)
        assert found.dtype == wanted.dtype
        if found.dtype.kind in "iub":
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(
                found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol
            )


def graph_of(
    pointers: Sequence[IPointer], body: Sequence[Any], units: int = 1, hardware: HardwareModel = HOST
) -> IGraph:
    """A graph with ``units`` units over these pointers."""
    return IGraph("kernel", hardware, units, 1, list(pointers), list(body))


def loop(var: str, extent: int, *body: Any) -> Loop:
    """A serial loop."""
    return Loop(var, extent, list(body))


def parsed(pointers: str, body: str, units: int = 1) -> IGraph:
    """A graph from the text of its pointers and body."""
    return parse_igraph(f"igraph kernel on host parallel ({units}, 1) {{\n{pointers}\n{body}\n}}", HOST)
