# SPDX-License-Identifier: Apache-2.0
"""The last columns of rows whose length a size decides: under a mask, or with some before them once more."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from tvm import tirx, topi
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu import first_lanes
from uir_tvm.target.cpu.lower import lower

from tests.extracted import extracted
from tests.open_functions import OpenFunction

from .support import HOST, llvm_target

ROWS, LONGEST = 4, 64


def sums(result: str) -> tirx.PrimFunc:
    """Sums of rows of x and y, into ``result``: z, or y itself."""
    tile, row = f"({ROWS},{LONGEST}); ({LONGEST},1); cols :s", f"({ROWS},{LONGEST}); (s,1); cols :s"
    pointers = [("x", "in"), ("y", "inout" if result == "y" else "in")] + [("z", "out")] * (result == "z")
    graph = parse_igraph(
        f"igraph kernel on host parallel (1, 1) {{\nsize s = [1, {LONGEST}]\n"
        + "".join(f"{name} = iPointer(dram, fp32, ({ROWS}, s), {role})\n" for name, role in pointers)
        + "".join(f"{name} = iPointer(reg, fp32, {ROWS * LONGEST})\n" for name in "abc")
        + f"""move.dram.reg.fp32 a[0; {tile}], x[0; {row}]
        move.dram.reg.fp32 b[0; {tile}], y[0; {row}]
        binary.add.fp32 c[0; {tile}], a[0; {tile}], b[0; {tile}]
        move.reg.dram.fp32 {result}[0; {row}], c[0; {tile}]
        }}""",
        HOST,
    )
    s = tirx.Var("s", "int64")
    params = [tirx.decl_buffer((ROWS, s), "float32", name=name) for name, _ in pointers]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return lower(graph, empty.with_attr({"global_symbol": "kernel", "tirx.noalias": True}))


@pytest.mark.parametrize("result", ["z", "y"])
def test_rows_of_all_lengths(result: str) -> None:
    """What a row adds to itself it adds once: there no column is made twice."""
    code = sums(result)
    run = tvm.compile(tvm.IRModule({"kernel": code}), target=llvm_target())["kernel"]
    rng = np.random.default_rng(0)
    for s in (1, 15, 16, 17, 37, 48, 63, 64):
        x, y = (rng.standard_normal((ROWS, s)).astype("float32") for _ in range(2))
        tensors = [tvm.runtime.tensor(a) for a in (x, y, np.zeros_like(x))][: 3 if result == "z" else 2]
        run(*tensors)
        np.testing.assert_array_equal(tensors[-1].numpy(), x + y)


@pytest.mark.skipif(not first_lanes.masked_bytes(HOST), reason="this processor moves nothing under masks")
def test_only_short_rows_end_under_masks_where_columns_may_be_made_twice() -> None:
    """A mask costs more than a whole vector: of the result's rows only those without one are stored so."""
    texts = [re.split(r"uir_store_(?:first|parts)", str(sums(result))) for result in "zy"]
    assert [len(text) for text in texts] == [2, 2]
    again, once = (text[0] for text in texts)
    assert again.count("else:") == once.count("else:") + 1


def softmax_code() -> str:
    """The code of a softmax over rows of open length, up to whole vectors."""
    ranges = {"m": (1, 2 * LONGEST)}
    function = OpenFunction(
        "normalization", [("n", 3, "m")], lambda x: topi.nn.softmax(x, -1), np.exp, ranges=ranges
    )
    scheduled = apply_default(function.func(), HOST)
    return str(lower(extracted(scheduled, HOST), scheduled))


@pytest.mark.skipif(not first_lanes.masked_bytes(HOST), reason="this processor moves nothing under masks")
def test_the_memory_of_a_kernel_takes_whole_vectors() -> None:
    """Exponentials of a row's last columns lie in the kernel's own memory with all their lanes."""
    parts = set(
        re.findall(r"uir_(?:store|load)_(?:first|parts)_\w+\W+T\.address_of\((\w+)\[", softmax_code())
    )
    assert len(parts) == 2 and all(name.endswith("_flat") for name in parts)


def filled(body: str) -> tirx.PrimFunc:
    """Rows of 64 columns of which a kernel makes the first s anew."""
    graph = parse_igraph(
        f"igraph kernel on host parallel (1, 1) {{\nsize s = [1, {LONGEST}]\n"
        f"x = iPointer(dram, fp32, ({ROWS}, s), in)\nz = iPointer(dram, fp32, {ROWS * LONGEST}, out)\n"
        f"a = iPointer(reg, fp32, {ROWS * LONGEST})\n{body}\n}}",
        HOST,
    )
    params = [
        tirx.decl_buffer((ROWS, tirx.Var("s", "int64")), "float32", name="x"),
        tirx.decl_buffer((ROWS * LONGEST,), "float32", name="z"),
    ]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return lower(graph, empty.with_attr({"global_symbol": "kernel", "tirx.noalias": True}))


def test_what_another_iop_left_behind_a_row_stays() -> None:
    """Memory that two iOps write has no room for lanes that do not exist."""
    tile = f"({ROWS},{LONGEST}); ({LONGEST},1)"
    code = filled(
        f"""fill.fp32 a[0; {tile}] [7.0]
        move.dram.reg.fp32 a[0; {tile}; cols :s], x[0; ({ROWS},{LONGEST}); (s,1); cols :s]
        move.reg.dram.fp32 z[0; {tile}], a[0; {tile}]"""
    )
    run = tvm.compile(tvm.IRModule({"kernel": code}), target=llvm_target())["kernel"]
    for s in (1, 5, 37, 64):
        x = np.random.default_rng(s).standard_normal((ROWS, s)).astype("float32")
        z = tvm.runtime.tensor(np.zeros(ROWS * LONGEST, "float32"))
        run(tvm.runtime.tensor(x), z)
        want = np.full((ROWS, LONGEST), 7, "float32")
        want[:, :s] = x
        np.testing.assert_array_equal(z.numpy().reshape(ROWS, LONGEST), want)


def test_sums_of_dear_values_of_open_rows_have_one_accumulator() -> None:
    """Maxima, which are quickly made, have four of them; exponentials take longer than an addition."""
    lanes = HOST.vector_bytes // 4
    found = set(re.findall(rf"(acc_\w+) = T\.alloc_buffer\(\({lanes},\)\)", softmax_code()))
    assert len([name for name in found if "expsum" in name]) == 1
    assert len([name for name in found if "expsum" not in name]) == 4
