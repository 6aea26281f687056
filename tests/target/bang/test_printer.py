# SPDX-License-Identifier: Apache-2.0
"""The text of BANG C kernels: goldens of whole operators, which the host model runs, and what is refused.

``UIR_UPDATE_GOLDEN=1 pytest tests/target/bang/test_printer.py`` writes the goldens anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from uir_tvm.errors import CodegenError, UirError
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.schedule import apply_default
from uir_tvm.target.bang.lower import lower

from tests.extracted import extracted

from ...corpus import recipes
from .golden_graphs import GRAPHS
from .kernels import DEVICE, PASSES, check, parse, printed

GOLDEN = Path(__file__).parent / "golden"
#: Operator and shapes of the corpus -> what its golden shows.
GOLDENS = {
    "swish 64x192 192": "elementwise work over a row that all rows share",
    "softmax 32x128": "reductions along rows and their way back",
    "layer norm 2x13x37 37 37": "rows that are no whole vectors, in a loop",
    "transpose 3x33x65": "a tile turned in NRAM, with a tail",
    "embedding 50x33 3x7 7x33": "rows chosen by an index",
    "row sum 33x77": "a reduction into what is stored",
}
#: Graphs by hand -> groups, units, passes, pointers and body.
BY_HAND = {
    "three stages": (
        8,
        1,
        ("multibuffer", "insert_sync", "allocate"),
        """
        x = iPointer(dram, fp32, 4096, in)
        y = iPointer(dram, fp32, 4096, out)
        t = iPointer(reg, fp32, 64)
        u = iPointer(reg, fp32, 64)
        for k in 8 [pipeline=2] {
          move.dram.reg.fp32 t[0; (1,64); (64,1)], x[64*k + 512*pid; (1,64); (64,1)]
          unary.adds.fp32 u[0; (1,64); (64,1)], t[0; (1,64); (64,1)] [1.0]
          move.reg.dram.fp32 y[64*k + 512*pid; (1,64); (64,1)], u[0; (1,64); (64,1)]
        }
        """,
    ),
    "an operand staged in sram": (
        2,
        4,
        ("multibuffer", "insert_sync", "allocate"),
        """
        x = iPointer(dram, fp32, 8192, in)
        y = iPointer(dram, fp32, 32768, out)
        s = iPointer(sram, fp32, 256)
        t = iPointer(reg, fp32, 256)
        for k in 16 [pipeline=2] {
        move.dram.sram.fp32 s[64*(pid % 4); (1,64); (64,1)], x[256*k + 3840*(pid/4) + 64*pid; (1,64); (64,1)]
          move.sram.reg.fp32 t[0; (1,256); (256,1)], s[0; (1,256); (256,1)]
          move.reg.dram.fp32 y[256*k + 4096*pid; (1,256); (256,1)], t[0; (1,256); (256,1)]
        }
        """,
    ),
    "five stages": (
        2,
        4,
        ("multibuffer", "insert_sync", "allocate"),
        """
        x = iPointer(dram, fp32, 14336, in)
        y = iPointer(dram, fp32, 14336, out)
        s = iPointer(sram, fp32, 1024)
        t = iPointer(reg, fp32, 256)
        u = iPointer(reg, fp32, 256)
        v = iPointer(sram, fp32, 1024)
        for k in 7 [pipeline=2] {
    move.dram.sram.fp32 s[256*(pid%4); (1,256); (256,1)], x[6144*(pid/4) + 1024*k + 256*pid; (1,256); (256,1)]
          move.sram.reg.fp32 t[0; (1,256); (256,1)], s[256*(pid%4); (1,256); (256,1)]
          unary.adds.fp32 u[0; (1,256); (256,1)], t[0; (1,256); (256,1)] [1.0]
          move.reg.sram.fp32 v[256*(pid%4); (1,256); (256,1)], u[0; (1,256); (256,1)]
    move.sram.dram.fp32 y[6144*(pid/4) + 1024*k + 256*pid; (1,256); (256,1)], v[256*(pid%4); (1,256); (256,1)]
        }
        """,
    ),
}


def graph_of(case: str) -> IGraph:
    return extracted(apply_default(recipes.example(case).func, DEVICE), DEVICE, name=_plain(case))


def _plain(text: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in text).split())


def _golden(case: str, source: str) -> None:
    path = GOLDEN / f"{_plain(case)}.mlu"
    if os.environ.get("UIR_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    assert source == path.read_text()


@pytest.mark.parametrize("case", GOLDENS)
def test_goldens(case: str) -> None:
    """The text is the one that was read and approved, and runs without a finding."""
    graph = graph_of(case)
    _golden(case, printed(graph, PASSES).source)
    # vector functions are within some ULP, and sums in another order than the interpreter's
    check(graph, recipes.example(case).inputs, PASSES, rtol=2e-5)


@pytest.mark.parametrize("case", GRAPHS)
def test_goldens_of_graphs(case: str) -> None:
    """As above; without functions but sums, so that all else is computed to the bit."""
    groups, units, text = GRAPHS[case]
    graph = parse(text, groups, units)
    rng = np.random.default_rng(1)
    takes = [p for p in graph.params if p.role == "in"]
    inputs = [rng.standard_normal(int(p.size)).astype(numpy_of(str(p.dtype))) for p in takes]
    sums = any(iop.op in ("reduce", "contract") for iop, _ in graph.walk())
    kernel = check(graph, inputs, PASSES, rtol=1e-5 if sums else 0.0)
    _golden(case, kernel.source)


@pytest.mark.parametrize("case", BY_HAND)
def test_pipelines(case: str) -> None:
    """One wait, or one meeting of the cluster, in the steady loop; the values stay."""
    groups, units, passes, text = BY_HAND[case]
    graph = parse(text, groups, units)
    size = int(graph.params[0].size)
    kernel = check(graph, [np.arange(size, dtype=np.float32)], passes)
    _golden(case, kernel.source)
    loop = kernel.source.split("  for (int32_t k")[1].split("\n  }\n")[0]
    waits = [line.strip() for line in loop.splitlines() if line.strip().startswith("__sync")]
    assert waits == ["__sync();" if units == 1 else "__sync_cluster();"]


def test_units_that_are_no_core_and_no_cluster() -> None:
    text = """
    x = iPointer(dram, fp32, 64, in)
    y = iPointer(dram, fp32, 64, out)
    t = iPointer(reg, fp32, 32)
    move.dram.reg.fp32 t[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)]
    move.reg.dram.fp32 y[32*pid; (1,32); (32,1)], t[0; (1,32); (32,1)]
    """
    with pytest.raises(CodegenError, match="units"):
        lower(parse(text, 1, 2))


def test_sram_of_a_core_is_refused() -> None:
    text = """
    x = iPointer(dram, fp32, 32, in)
    y = iPointer(dram, fp32, 32, out)
    t = iPointer(sram, fp32, 32)
    move.dram.sram.fp32 t[0; (1,32); (32,1)], x[0; (1,32); (32,1)]
    move.sram.dram.fp32 y[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
    """
    with pytest.raises(UirError, match="sram|SRAM"):
        printed(parse(text))


def test_a_function_of_sram_is_refused() -> None:
    """Vector functions take NRAM alone."""
    text = """
    x = iPointer(dram, fp32, 256, in)
    y = iPointer(dram, fp32, 256, out)
    s = iPointer(sram, fp32, 128)
    t = iPointer(reg, fp32, 32)
    move.dram.reg.fp32 t[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)]
    move.reg.sram.fp32 s[32*(pid % 4); (1,32); (32,1)], t[0; (1,32); (32,1)]
    unary.adds.fp32 t[0; (1,32); (32,1)], s[32*(pid % 4); (1,32); (32,1)] [1.0]
    move.reg.dram.fp32 y[32*pid; (1,32); (32,1)], t[0; (1,32); (32,1)]
    """
    with pytest.raises(CodegenError, match="in SRAM"):
        printed(parse(text, 2, 4))
