# SPDX-License-Identifier: Apache-2.0
"""The text of Ascend C kernels: goldens of whole operators, which the host model runs, and what is refused.

``UIR_UPDATE_GOLDEN=1 pytest tests/target/ascend/test_printer.py`` writes the goldens anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph
from uir_tvm.optimize import optimize
from uir_tvm.schedule import apply_default
from uir_tvm.target.ascend.lower import lower
from uir_tvm.target.printer import print_source

from tests.extracted import extracted

from ...corpus import recipes
from .kernels import DEVICE, PASSES, check, parse, printed

GOLDEN = Path(__file__).parent / "golden"
#: Operator and shapes of the corpus -> what its golden shows.
GOLDENS = {
    "swish 64x192 192": "elementwise work over a row that all rows share",
    "softmax 32x128": "reductions along rows and their way back",
    "layer norm 2x13x37 37 37": "rows that are no whole blocks, in a loop",
    "transpose 3x33x65": "a tile turned in the unified buffer, with a tail",
    "embedding 50x33 3x7 7x33": "rows chosen by an index",
}


def graph_of(case: str) -> IGraph:
    return extracted(apply_default(recipes.example(case).func, DEVICE), DEVICE, name=_plain(case))


def _plain(text: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in text).split())


@pytest.mark.parametrize("case", GOLDENS)
def test_goldens(case: str) -> None:
    """The text is the one that was read and approved, and runs without a finding."""
    graph = graph_of(case)
    kernel = printed(graph, PASSES)
    path = GOLDEN / f"{_plain(case)}.cpp"
    if os.environ.get("UIR_UPDATE_GOLDEN"):
        path.write_text(kernel.source)
    assert kernel.source == path.read_text()
    # functions of the vector core are within 1 ULP, and sums in another order than the interpreter's
    check(graph, recipes.example(case).inputs, PASSES, rtol=2e-5)


MOVES = """
move.dram.reg.fp32 t[0; (1,64); (64,1)], x[0; (1,64); (64,1)]
move.reg.dram.fp32 y[0; (1,64); (64,1)], t[0; (1,64); (64,1)]
"""
POINTERS = """
x = iPointer(dram, fp32, 64, in)
y = iPointer(dram, fp32, 64, out)
t = iPointer(reg, fp32, 64)
"""


def test_one_kernel_for_each_phase() -> None:
    """Names are numbered, tensors that outlive a phase are workspace."""
    graph = parse(
        POINTERS
        + "w = iPointer(dram, fp32, 64)\n"
        + MOVES.replace("y[", "w[")
        + "sync.dram w[0; (1,64); (64,1)], w[0; (1,64); (64,1)]\n"
        + MOVES.replace("x[", "w[")
    )
    kernel = lower(optimize(graph, ["allocate"]).graph)
    assert [launch.name for launch in kernel.launches] == ["g", "g_1"]
    assert [(w.name, w.nbytes) for w in kernel.workspace] == [("w", 256)]


def test_names_that_the_toolkit_takes() -> None:
    """Tensors called as functions and types of the vendor are called otherwise."""
    text = (POINTERS + MOVES).replace("x", "Add").replace("t[", "pipe[").replace("t =", "pipe =")
    source = printed(parse(text)).source
    assert "GM_ADDR Add_1" in source and "LocalTensor<float> pipe_1" in source


def refused(graph: IGraph, *passes: str) -> CodegenError:
    with pytest.raises(CodegenError) as caught:
        print_source("uir.codegen.ascend", [optimize(graph, passes).graph], "g")
    return caught.value


def test_a_graph_without_addresses_is_refused() -> None:
    error = refused(parse(POINTERS + MOVES), "dead")
    assert "address" in error.what and "t" in error.where and "allocate" in error.remedy


def test_shared_memory_is_refused() -> None:
    shared = parse((POINTERS + MOVES).replace("iPointer(reg", "iPointer(sram").replace(".reg", ".sram"))
    with pytest.raises(CodegenError, match="shares no memory"):
        print_source("uir.codegen.ascend", [shared], "g")


def test_doubles_are_refused() -> None:
    error = refused(parse((POINTERS + MOVES).replace("fp32", "fp64")), "allocate")
    assert "fp64" in error.what


def test_a_work_buffer_without_room_names_what_is_alive() -> None:
    """Two tiles that fill the unified buffer leave none for the transposition between them."""
    graph = parse(
        """
        x = iPointer(dram, fp32, 24000, in)
        y = iPointer(dram, fp32, 47040, out)
        t = iPointer(reg, fp32, 24000)
        u = iPointer(reg, fp32, 23040)
        move.dram.reg.fp32 u[0; (1,23040); (23040,1)], x[0; (1,23040); (23040,1)]
        move.dram.reg.fp32 t[0; (3000,8); (8,1)], x[0; (3000,8); (1,3000)]
        move.reg.dram.fp32 y[0; (1,24000); (24000,1)], t[0; (1,24000); (24000,1)]
        move.reg.dram.fp32 y[24000; (1,23040); (23040,1)], u[0; (1,23040); (23040,1)]
        """
    )
    error = refused(graph, "allocate")
    assert "t 96000 bytes" in error.need and "u 92160 bytes" in error.need and "188160" in error.limit
