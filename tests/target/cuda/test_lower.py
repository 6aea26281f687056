# SPDX-License-Identifier: Apache-2.0
"""iGraphs as products of uir-cuda: kernels, launches, workspace, and what is refused."""

from __future__ import annotations

import pytest
from uir_tvm import hardware
from uir_tvm.device.device_kernel import KernelParameter, Launch, Workspace
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.igraph.text import print_hardware
from uir_tvm.target.cuda.lower import lower
from uir_tvm.target.source import identifier

COPY = """
igraph copy on h200 parallel (2, 4) {
  x = iPointer(dram, fp16, 1024, in)
  y = iPointer(dram, fp16, 1024, out)
  t = iPointer(reg, fp16, 128)
  move.dram.reg.fp16 t[0; (1,128); (128,1)], x[128*pid; (1,128); (128,1)]
  move.reg.dram.fp16 y[128*pid; (1,128); (128,1)], t[0; (1,128); (128,1)]
}
"""
#: Rows are summed, then every unit takes the largest of all sums: two phases, the sums between them.
SHARED = """
igraph share on h200 parallel (4, 1) {
  x = iPointer(dram, fp32, 128, in)
  y = iPointer(dram, fp32, 4, out)
  part = iPointer(dram, fp32, 4)
  t = iPointer(reg, fp32, 32)
  s = iPointer(reg, fp32, 4)
  move.dram.reg.fp32 t[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)]
  reduce.add.row.unit.fp32 s[0; (1,1); (1,1)], t[0; (1,32); (32,1)]
  move.reg.dram.fp32 part[pid; (1,1); (1,1)], s[0; (1,1); (1,1)]
  sync.dram part[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
  move.dram.reg.fp32 s[0; (1,4); (4,1)], part[0; (1,4); (4,1)]
  reduce.max.row.unit.fp32 t[0; (1,1); (1,1)], s[0; (1,4); (4,1)]
  move.reg.dram.fp32 y[pid; (1,1); (1,1)], t[0; (1,1); (1,1)]
}
"""


def parsed(text: str, model: str = "h200") -> IGraph:
    """The graph of a text, for a GPU."""
    hw = hardware.get(model, "cuda")
    return parse_igraph(print_hardware(hw) + text.replace("h200", model))


def test_the_product_says_how_it_is_launched() -> None:
    kernel = lower(parsed(COPY))
    assert kernel.launches == (Launch("copy", 2, 4 * 32, 0, False, ("x", "y")),)
    assert kernel.params == (
        KernelParameter("x", "fp16", 1024, "in"),
        KernelParameter("y", "fp16", 1024, "out"),
    )
    assert [p.nbytes for p in kernel.params] == [2048, 2048]
    assert (kernel.workspace, kernel.hardware, kernel.arch) == ((), "h200", "sm_90a")
    assert str(kernel) == kernel.source and "__launch_bounds__(128)" in kernel.source
    assert kernel.suffix == ".cu"


def test_the_architecture_is_that_of_the_graph() -> None:
    assert lower(parsed(COPY, "a100")).arch == "sm_80"


def test_phases_are_kernels_that_share_a_workspace() -> None:
    kernel = lower(parsed(SHARED))
    first, second = kernel.launches
    assert first.name != second.name and (first.cooperative, second.cooperative) == (False, False)
    assert first.params == ("x", "part") and second.params == ("y", "part")
    assert kernel.workspace == (Workspace("part", 16),)


def test_a_cooperative_graph_is_one_kernel() -> None:
    graph = parsed(SHARED)
    kernel = lower(graph.replace(attrs={"cooperative": True}))
    (launch,) = kernel.launches
    assert launch.cooperative and "this_grid().sync()" in kernel.source
    assert set(launch.params) == {"x", "y", "part"} and kernel.workspace == (Workspace("part", 16),)


def test_a_value_gets_a_pointer_of_its_own() -> None:
    """`t` holds the input and then the maximum, of another shape: two values, two homes."""
    graph = parsed(SHARED)
    assert lower(graph).source.count("reg<") > sum(p.level == "reg" for p in graph.pointers)


def test_a_value_that_nobody_reads_is_not_computed() -> None:
    """A pointer that is written, and written again before anything reads it: the first value goes."""
    unread = COPY.replace("  move.dram", "  fill.fp16 t[0; (1,128); (128,1)] [1.5]\n  move.dram", 1)
    assert "fill" not in lower(parsed(unread)).source and "reg<" in lower(parsed(unread)).source


def test_the_name_of_a_library_function_is_no_kernel() -> None:
    """`exp` is a function of C already, which no kernel may be called."""
    product = lower(parsed(COPY.replace("igraph copy", "igraph exp")))
    assert product.launches[0].name != "exp" and f" {product.launches[0].name}(" in product.source


def test_hardware_of_another_kind_is_refused() -> None:
    graph = parsed(COPY)
    with pytest.raises(CodegenError, match="for host, a cpu") as caught:
        lower(graph.replace(hardware=hardware.get("host")))
    assert "kind cuda" in caught.value.need


def test_a_block_of_too_many_warps_is_refused() -> None:
    with pytest.raises(CodegenError, match="33 units") as caught:
        lower(parsed(COPY.replace("parallel (2, 4)", "parallel (1, 33)")))
    assert caught.value.limit == "32 warps in a block"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("softmax", "softmax"),
        ("a.b-c", "a_b_c"),
        ("2norm", "kernel_2norm"),
        ("main", "kernel_main"),
        ("float", "kernel_float"),
        ("tanh", "kernel_tanh"),
        ("", "kernel_"),
        ("größe", "gr__e"),
    ],
)
def test_names_become_names_of_cpp(name: str, wanted: str) -> None:
    assert identifier(name) == wanted


#: What one lane stored is read by all in a loop, and again behind it.
READ_BEHIND_A_LOOP = """
igraph behind on h200 parallel (1, 1) {
  size count = [0, 8]
  x = iPointer(dram, fp32, 32, in)
  y = iPointer(dram, fp32, 8, out)
  z = iPointer(dram, fp32, 1, out)
  s = iPointer(sram, fp32, 32)
  t = iPointer(reg, fp32, 32)
  a = iPointer(reg, fp32, 1)
  b = iPointer(reg, fp32, 1)
  move.dram.reg.fp32 t[0; (1,32); (32,1)], x[0; (1,32); (32,1)]
  move.reg.sram.fp32 s[0; (1,32); (32,1)], t[0; (1,32); (32,1)]
  for turn in 8 {
    move.sram.reg.fp32 a[0; (1,1); (1,1); rows :count - turn], s[turn; (1,1); (1,1); rows :count - turn]
    move.reg.dram.fp32 y[turn; (1,1); (1,1); rows :count - turn], a[0; (1,1); (1,1); rows :count - turn]
  }
  move.sram.reg.fp32 b[0; (1,1); (1,1)], s[5; (1,1); (1,1)]
  move.reg.dram.fp32 z[0; (1,1); (1,1)], b[0; (1,1); (1,1)]
}
"""


def test_a_loop_that_sizes_end_may_have_no_round() -> None:
    """Then its lanes meet nowhere in it: what follows must not count on that."""
    open_text = lower(parsed(READ_BEHIND_A_LOOP)).source
    assert "turn < count; ++turn" in open_text
    closed_text = lower(parsed(READ_BEHIND_A_LOOP.replace("; rows :count - turn", ""))).source
    assert "turn < 8; ++turn" in closed_text
    behind = [text[text.index("++turn") :].partition("\n  }\n")[2] for text in (open_text, closed_text)]
    assert ["__syncwarp()" in text for text in behind] == [True, False]


def test_units_that_would_walk_too_many_rounds_are_refused() -> None:
    """Copies run ahead in this loop, so that it stays whole."""
    text = READ_BEHIND_A_LOOP.replace("for turn in 8 {", "for turn in 8193 [stages=2] {")
    text = text.replace("[0, 8]", "[0, 8193]")
    with pytest.raises(CodegenError, match="walks 8193 rounds") as refused:
        lower(parsed(text.replace("y = iPointer(dram, fp32, 8,", "y = iPointer(dram, fp32, 8193,")))
    assert "8192 rounds" in refused.value.limit and "upper bounds" in refused.value.remedy
