# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of an iGraph's text is one iOp)
"""Whole operators as emitted equal the interpreter: row-wise chains, reductions, layouts, padding, loops."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm_ffi
from hypothesis import HealthCheck, given, settings
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph, IPointer, ISlice, make

from tests.igraph.strategies import random_inputs, runnable_igraphs

from .support import HOST, check, compiled, graph_of, loop, lower, parsed, signature

#: Sums in another order, and functions within 4 ULP.
RTOL = 5e-6


def softmax(rows: int, cols: int, units: int) -> IGraph:
    """Softmax over the rows of (rows * units, cols)."""
    n, tile = rows * units * cols, rows * cols
    s, c = f"({rows},{cols})", f"({rows},1)"
    tiles = "".join(f"{x} = iPointer(reg, fp32, {tile})\n" for x in ("a", "b", "e", "d", "mb", "sb"))
    here = f"[{tile}*pid; {s}; ({cols},1)]"
    return parsed(
        f"x = iPointer(dram, fp32, {n}, in)\no = iPointer(dram, fp32, {n}, out)\n{tiles}"
        f"m = iPointer(reg, fp32, {rows})\ns = iPointer(reg, fp32, {rows})",
        f"""move.dram.reg.fp32 a[0; {s}; ({cols},1)], x{here}
        reduce.max.row.unit.fp32 m[0; {c}; (1,1)], a[0; {s}; ({cols},1)]
        broadcast.row.unit.fp32 mb[0; {s}; ({cols},1)], m[0; {c}; (1,1)]
        binary.sub.fp32 b[0; {s}; ({cols},1)], a[0; {s}; ({cols},1)], mb[0; {s}; ({cols},1)]
        unary.exp.fp32 e[0; {s}; ({cols},1)], b[0; {s}; ({cols},1)]
        reduce.add.row.unit.fp32 s[0; {c}; (1,1)], e[0; {s}; ({cols},1)]
        broadcast.row.unit.fp32 sb[0; {s}; ({cols},1)], s[0; {c}; (1,1)]
        binary.div.fp32 d[0; {s}; ({cols},1)], e[0; {s}; ({cols},1)], sb[0; {s}; ({cols},1)]
        move.reg.dram.fp32 o{here}, d[0; {s}; ({cols},1)]""",
        units,
    )


@pytest.mark.parametrize(("rows", "cols", "units"), [(4, 100, 3), (1, 7, 2), (8, 64, 1), (3, 1, 2)])
def test_softmax(rows: int, cols: int, units: int) -> None:
    graph = softmax(rows, cols, units)
    check(graph, random_inputs(graph), RTOL, 1e-7)


def test_softmax_calls_nothing_and_uses_vectors() -> None:
    text = compiled(softmax(4, 1024, 8)).mod.inspect_source("asm")
    assert "expf" not in text
    register = {64: "zmm", 32: "ymm", 16: "xmm"}[HOST.vector_bytes]
    vectors = [line for line in text.splitlines() if register in line and re.search("fmadd|mulps", line)]
    assert len(vectors) >= 4, "the exponential is not computed in vector registers"


def test_softmax_keeps_one_row_of_exponentials() -> None:
    """A tile that only crosses groups within its row exists as one row, where no pass goes over all rows."""
    text = str(lower(softmax(4, 1040, 2), signature(softmax(4, 1040, 2))))
    assert "e = T.alloc_buffer((1040,)" in text
    assert "a = T.alloc_buffer" not in text


def test_layer_norm() -> None:
    """Residual, mean, variance, scale and shift with row vectors read in place."""
    r, c, u = 4, 77, 3
    n, t = r * c * u, r * c
    s, q, b = f"[0; ({r},{c}); ({c},1)]", f"[0; ({r},1); (1,1)]", f"[{t}*pid; ({r},{c}); ({c},1)]"
    dram = "".join(
        f"{x} = iPointer(dram, fp32, {size}, in)\n" for x, size in (("x", n), ("y", n), ("g", c), ("h", c))
    )
    regs = "".join(f"r{k} = iPointer(reg, fp32, {t})\n" for k in range(10))
    cols = "".join(f"c{k} = iPointer(reg, fp32, {r})\n" for k in range(5)) + f"v = iPointer(reg, fp32, {c})\n"
    graph = parsed(
        f"{dram}o = iPointer(dram, fp32, {n}, out)\n{regs}{cols}w = iPointer(reg, fp32, {c})",
        f"""move.dram.reg.fp32 r0{s}, x{b}
        move.dram.reg.fp32 r1{s}, y{b}
        move.dram.reg.fp32 v[0; (1,{c}); ({c},1)], g[0; (1,{c}); ({c},1)]
        move.dram.reg.fp32 w[0; (1,{c}); ({c},1)], h[0; (1,{c}); ({c},1)]
        binary.add.fp32 r2{s}, r0{s}, r1{s}
        reduce.add.row.unit.fp32 c0{q}, r2{s}
        unary.muls.fp32 c1{q}, c0{q} [{1 / c}]
        broadcast.row.unit.fp32 r3{s}, c1{q}
        binary.sub.fp32 r4{s}, r2{s}, r3{s}
        binary.mul.fp32 r5{s}, r4{s}, r4{s}
        reduce.add.row.unit.fp32 c2{q}, r5{s}
        unary.muls.fp32 c2{q}, c2{q} [{1 / c}]
        unary.adds.fp32 c3{q}, c2{q} [1e-05]
        unary.rsqrt.fp32 c4{q}, c3{q}
        broadcast.row.unit.fp32 r6{s}, c4{q}
        binary.mul.fp32 r7{s}, r4{s}, r6{s}
        broadcast.col.unit.fp32 r8{s}, v[0; (1,{c}); ({c},1)]
        binary.mul.fp32 r7{s}, r7{s}, r8{s}
        broadcast.col.unit.fp32 r9{s}, w[0; (1,{c}); ({c},1)]
        binary.add.fp32 r7{s}, r7{s}, r9{s}
        move.reg.dram.fp32 o{b}, r7{s}""",
        u,
    )
    check(graph, random_inputs(graph), 1e-5, 1e-5)


@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "int32", "uint8", "bool"])
def test_reduce(name: str, axis: str, dtype: str) -> None:
    """Over a valid box that starts and ends inside the tile, and over nothing."""
    if dtype == "bool" and name in ("add", "mul"):
        pytest.skip("bool has no sum")
    rows, cols = 6, 43
    target = f"({rows},1); (1,1)" if axis == "row" else f"(1,{cols}); ({cols},1)"
    size = rows if axis == "row" else cols
    box = "; rows 1:5; cols 2:41"
    graph = parsed(
        f"x = iPointer(dram, {dtype}, {rows * cols}, in)\no = iPointer(dram, {dtype}, {size}, out)\n"
        f"e = iPointer(dram, {dtype}, {size}, out)",
        f"""reduce.{name}.{axis}.unit.{dtype} o[0; {target}], x[0; ({rows},{cols}); ({cols},1){box}]
        reduce.{name}.{axis}.unit.{dtype} e[0; {target}], x[0; ({rows},{cols}); ({cols},1); cols 3:3; rows 2:2]""",
    )
    inputs = random_inputs(graph)
    # a product of integers wraps alike; of narrow floats each order rounds in fp32 and once at the end
    tolerance = {"fp16": 2e-3, "bf16": 1.6e-2}.get(dtype, RTOL)
    check(graph, inputs, tolerance, 1e-6)


def test_reduce_keeps_nan() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 400, in)\no = iPointer(dram, fp32, 4, out)\np = iPointer(dram, fp32, 100, out)",
        """reduce.max.row.unit.fp32 o[0; (4,1); (1,1)], x[0; (4,100); (100,1)]
        reduce.min.col.unit.fp32 p[0; (1,100); (100,1)], x[0; (4,100); (100,1)]""",
    )
    x = random_inputs(graph)[0]
    x[[3, 177, 399]] = np.nan
    check(graph, [x])


@pytest.mark.parametrize("shape", [(8, 8), (37, 50), (64, 16), (5, 3), (1, 40), (40, 1)])
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int8", "fp64"])
def test_transpose(shape: tuple[int, int], dtype: str) -> None:
    """Whole blocks through registers, the borders one by one; with a computation on the way."""
    r, c = shape
    graph = parsed(
        f"x = iPointer(dram, {dtype}, {r * c}, in)\no = iPointer(dram, {dtype}, {r * c}, out)\n"
        f"q = iPointer(dram, {dtype}, {r * c}, out)\na = iPointer(reg, {dtype}, {r * c})",
        f"""transpose.{dtype} o[0; ({c},{r}); ({r},1)], x[0; ({r},{c}); ({c},1)]
        transpose.{dtype} a[0; ({c},{r}); ({r},1)], x[0; ({r},{c}); ({c},1)]
        unary.adds.{dtype} q[0; ({c},{r}); ({r},1)], a[0; ({c},{r}); ({r},1)] [2]""",
    )
    check(graph, random_inputs(graph))


@pytest.mark.parametrize("stride", ["(2,80)", "(80,2)", "(40,1)", "(40,-1)"])
def test_a_transposed_copy_into_strides(stride: str) -> None:
    """Blocks go straight to a target whose columns are contiguous, through scratch memory to others."""
    graph = parsed(
        "x = iPointer(dram, fp32, 1600, in)\no = iPointer(dram, fp32, 3200, out)",
        f"move.dram.dram.fp32 o[{39 if '-' in stride else 0}; (40,40); {stride}], x[0; (40,40); (1,40)]",
    )
    check(graph, random_inputs(graph))


@pytest.mark.parametrize("stride", ["(2,80)", "(80,2)", "(40,1)"])
def test_a_transposed_copy_by_way_of_a_tile(stride: str) -> None:
    """The tile's contiguous columns are those of the loops, whatever the strides of the target."""
    graph = parsed(
        "x = iPointer(dram, fp32, 1600, in)\no = iPointer(dram, fp32, 3200, out)\na = iPointer(reg, fp32, 1600)",
        f"""move.dram.reg.fp32 a[0; (40,40); (40,1)], x[0; (40,40); (1,40)]
        move.reg.dram.fp32 o[0; (40,40); {stride}], a[0; (40,40); (40,1)]""",
    )
    check(graph, random_inputs(graph))


@pytest.mark.parametrize("box", ["rows 3:38", "cols 2:37", "rows :40; cols 1:"])
def test_a_transposed_copy_with_padding(box: str) -> None:
    """Blocks would bring what lies outside of the box."""
    graph = parsed(
        "x = iPointer(dram, fp32, 1600, in)\no = iPointer(dram, fp32, 1600, out)",
        f"move.dram.dram.fp32 o[0; (40,40); (40,1)], x[0; (40,40); (1,40); {box}] [pad=-2.5]",
    )
    check(graph, random_inputs(graph))


def test_move_with_padding_on_every_side() -> None:
    """Elements outside the source's box become the pad value; what feeds a reduction likewise."""
    graph = parsed(
        "x = iPointer(dram, fp32, 60, in)\no = iPointer(dram, fp32, 160, out)\nm = iPointer(dram, fp32, 8, out)\n"
        "a = iPointer(reg, fp32, 160)",
        """move.dram.reg.fp32 a[0; (8,20); (20,1)], x[-13; (8,20); (12,1); rows 1:6; cols 1:13] [pad=-2.5]
        unary.muls.fp32 a[0; (8,20); (20,1)], a[0; (8,20); (20,1)] [2.0]
        move.reg.dram.fp32 o[0; (8,20); (20,1)], a[0; (8,20); (20,1)]
        reduce.max.row.unit.fp32 m[0; (8,1); (1,1)], a[0; (8,20); (20,1)]""",
    )
    check(graph, random_inputs(graph))


def test_padding_that_depends_on_the_unit() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 100, in)\no = iPointer(dram, fp32, 128, out)\na = iPointer(reg, fp32, 32)",
        """move.dram.reg.fp32 a[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1); cols :100 - 32*pid] [pad=7.0]
        unary.exp.fp32 a[0; (1,32); (32,1)], a[0; (1,32); (32,1)]
        move.reg.dram.fp32 o[32*pid; (1,32); (32,1)], a[0; (1,32); (32,1)]""",
        4,
    )
    check(graph, random_inputs(graph))


def test_tail_of_the_last_unit() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 1024, in)\no = iPointer(dram, fp32, 1024, out)\na = iPointer(reg, fp32, 384)",
        """move.dram.reg.fp32 a[0; (3,128); (128,1); rows :8 - 3*pid], x[384*pid; (3,128); (128,1); rows :8 - 3*pid]
        unary.tanh.fp32 a[0; (3,128); (128,1); rows :8 - 3*pid], a[0; (3,128); (128,1); rows :8 - 3*pid]
        move.reg.dram.fp32 o[384*pid; (3,128); (128,1); rows :8 - 3*pid], a[0; (3,128); (128,1); rows :8 - 3*pid]""",
        3,
    )
    check(graph, random_inputs(graph))


def test_gather_and_scatter() -> None:
    """Rows and single elements; indices outside the table give the pad and write nothing."""
    index = np.array([3, 0, -1, 9, 10, 4, 2, 2], np.int64)
    graph = parsed(
        "t = iPointer(dram, fp32, 190, in)\ni = iPointer(dram, int64, 8, in)\nx = iPointer(dram, fp32, 152, in)\n"
        "o = iPointer(dram, fp32, 152, out)\ne = iPointer(dram, fp32, 8, out)\nk = iPointer(dram, fp32, 190, inout)\n"
        "l = iPointer(dram, fp32, 10, inout)\nj = iPointer(reg, int64, 8)",
        """move.dram.reg.int64 j[0; (8,1); (1,1)], i[0; (8,1); (1,1)]
        gather.fp32 o[0; (8,19); (19,1)], t[0; (10,19); (19,1)], j[0; (8,1); (1,1)] [pad=-1.0]
        gather.fp32 e[0; (1,8); (8,1)], t[5; (10,1); (19,1)], j[0; (1,8); (8,1)]
        scatter.fp32 k[0; (10,19); (19,1)], x[0; (8,19); (19,1)], i[0; (8,1); (1,1)]
        scatter.fp32 l[0; (10,1); (1,1)], x[0; (2,4); (4,1)], i[0; (2,4); (4,1)]""",
    )
    rng = np.random.default_rng(0)
    t, x, k, m = (rng.standard_normal(n).astype(np.float32) for n in (190, 152, 190, 10))
    check(graph, [t, index, x, k, m])


def test_loop_carries_a_row_state() -> None:
    """An online maximum and sum over column chunks, kept in reg memory between iterations."""
    graph = parsed(
        "x = iPointer(dram, fp32, 600, in)\no = iPointer(dram, fp32, 6, out)\na = iPointer(reg, fp32, 100)\n"
        "m = iPointer(reg, fp32, 2)\nn = iPointer(reg, fp32, 2)\ns = iPointer(reg, fp32, 2)\nt = iPointer(reg, fp32, 2)",
        """fill.fp32 m[0; (2,1); (1,1)] [-inf]
        fill.fp32 s[0; (2,1); (1,1)] [0.0]
        for k in 2 {
          move.dram.reg.fp32 a[0; (2,50); (50,1)], x[200*pid + 50*k; (2,50); (100,1)]
          reduce.max.row.unit.fp32 n[0; (2,1); (1,1)], a[0; (2,50); (50,1)]
          binary.max.fp32 n[0; (2,1); (1,1)], n[0; (2,1); (1,1)], m[0; (2,1); (1,1)]
          binary.sub.fp32 m[0; (2,1); (1,1)], m[0; (2,1); (1,1)], n[0; (2,1); (1,1)]
          unary.exp.fp32 m[0; (2,1); (1,1)], m[0; (2,1); (1,1)]
          binary.mul.fp32 s[0; (2,1); (1,1)], s[0; (2,1); (1,1)], m[0; (2,1); (1,1)]
          binary.sub.fp32 a[0; (2,50); (50,1)], a[0; (2,50); (50,1)], n[0; (2,50); (1,0)]
          unary.exp.fp32 a[0; (2,50); (50,1)], a[0; (2,50); (50,1)]
          reduce.add.row.unit.fp32 t[0; (2,1); (1,1)], a[0; (2,50); (50,1)]
          binary.add.fp32 s[0; (2,1); (1,1)], s[0; (2,1); (1,1)], t[0; (2,1); (1,1)]
          unary.copy.fp32 m[0; (2,1); (1,1)], n[0; (2,1); (1,1)]
        }
        move.reg.dram.fp32 o[2*pid; (2,1); (1,1)], s[0; (2,1); (1,1)]""",
        3,
    )
    check(graph, random_inputs(graph), RTOL)


def test_iop_that_overwrites_what_it_reads() -> None:
    """A transposition in place, a shift by one and a reversal: read first, then written."""
    graph = parsed(
        "x = iPointer(dram, fp32, 81, in)\no = iPointer(dram, fp32, 81, out)\na = iPointer(reg, fp32, 81)",
        """move.dram.reg.fp32 a[0; (9,9); (9,1)], x[0; (9,9); (9,1)]
        transpose.fp32 a[0; (9,9); (9,1)], a[0; (9,9); (9,1)]
        unary.muls.fp32 a[1; (1,80); (80,1)], a[0; (1,80); (80,1)] [3.0]
        unary.copy.fp32 a[0; (1,80); (80,1)], a[79; (1,80); (80,-1)]
        reduce.add.col.unit.fp32 a[9; (1,9); (9,1)], a[0; (9,9); (9,1)]
        move.reg.dram.fp32 o[0; (9,9); (9,1)], a[0; (9,9); (9,1)]""",
    )
    check(graph, random_inputs(graph), RTOL)


def test_halves_of_a_row() -> None:
    """Rotary embedding: parts of a row that are apart share the nest."""
    graph = parsed(
        "x = iPointer(dram, fp32, 320, in)\no = iPointer(dram, fp32, 320, out)\na = iPointer(reg, fp32, 320)\n"
        "b = iPointer(reg, fp32, 320)",
        """move.dram.reg.fp32 a[0; (5,64); (64,1)], x[0; (5,64); (64,1)]
        unary.neg.fp32 b[0; (5,32); (64,1)], a[32; (5,32); (64,1)]
        unary.copy.fp32 b[32; (5,32); (64,1)], a[0; (5,32); (64,1)]
        binary.add.fp32 b[0; (5,64); (64,1)], b[0; (5,64); (64,1)], a[0; (5,64); (64,1)]
        move.reg.dram.fp32 o[0; (5,64); (64,1)], b[0; (5,64); (64,1)]""",
    )
    check(graph, random_inputs(graph))


def test_memory_between_operators_of_one_kernel() -> None:
    """dram scratch is shared memory of the call; identity and sync within a unit cost nothing."""
    graph = parsed(
        "x = iPointer(dram, fp32, 64, in)\no = iPointer(dram, fp32, 64, out)\nd = iPointer(dram, fp32, 64)\n"
        "a = iPointer(reg, fp32, 16)",
        """unary.muls.fp32 d[16*pid; (1,16); (16,1)], x[16*pid; (1,16); (16,1)] [2.0]
        move.dram.reg.fp32 a[0; (1,16); (16,1)], d[16*pid; (1,16); (16,1)]
        sync.reg a[0; (1,16); (16,1)], a[0; (1,16); (16,1)]
        identity [a[0; (4,4); (4,1)]], [a[0; (1,16); (16,1)]]
        move.reg.dram.fp32 o[16*pid; (4,4); (4,1)], a[0; (4,4); (4,1)]""",
        4,
    )
    check(graph, random_inputs(graph))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(runnable_igraphs())
def test_random_graphs(graph: IGraph) -> None:
    check(graph, random_inputs(graph), 2e-6, 2e-6)


def test_tensors_may_start_anywhere() -> None:
    """A tensor aligned to its elements only: TVM promises LLVM more, without checking."""
    graph = softmax(2, 64, 2)
    run = compiled(graph)["kernel"]
    room = np.random.default_rng(0).standard_normal(2 * 256 + 2).astype(np.float32)
    x, o = room[1:257], room[257:513]
    expected = np.exp(x.reshape(4, 64))
    expected /= expected.sum(1, keepdims=True)
    run(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o))
    np.testing.assert_allclose(o.reshape(4, 64), expected, rtol=RTOL)


def test_refusals_name_the_need() -> None:
    a, s = IPointer("a", "dram", "fp32", 64, "inout"), IPointer("s", "sram", "fp32", 64)
    piece = ISlice(a, 0, (1, 8))
    graph = graph_of([a], [loop("k", 2, make.sync(piece, piece, "dram"))])
    with pytest.raises(CodegenError, match="barrier of all units stands inside the loop"):
        lower(graph, signature(graph))
    column = ISlice(a, 0, (1, 1))
    group = make.reduce("add", column, piece, "row", "group", ISlice(s, 0, (4, 1)), 4)
    graph = graph_of([a, s], [group])
    with pytest.raises(CodegenError, match="one unit in a group"):
        lower(graph, signature(graph))
    graph = graph_of([a], []).replace(num_units=4)
    with pytest.raises(CodegenError, match="4 units"):
        lower(graph, signature(graph))
    f = IPointer("f", "dram", "fp8e4m3", 8, "inout")
    graph = graph_of([f], [make.fill(ISlice(f, 0, (1, 8)), 1.0)])
    with pytest.raises(CodegenError, match="fp8e4m3"):
        lower(graph, signature(graph))
