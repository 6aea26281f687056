# SPDX-License-Identifier: Apache-2.0
"""Reductions of short rows of known length: several rows across their lanes at once, and ends made twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import tirx
from uir_tvm.igraph import HardwareModel
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.target.cpu.code import Code
from uir_tvm.target.cpu.emit_reduce import COMBINE
from uir_tvm.target.cpu.lower import lower
from uir_tvm.target.cpu.row_blocks import across

from .support import HOST, llvm_target

#: Rows that are no block, whole blocks, and blocks of which the last repeats some rows.
ROWS = (3, 8, 10, 16, 21)
#: Columns: one vector, whole vectors, and ends of all kinds.
COLUMNS = (8, 9, 16, 20, 37, 64, 100, 255)


def kernel(rows: int, cols: int, kind: str, dtype: str = "fp32", hw: HardwareModel = HOST) -> tirx.PrimFunc:
    """A reduction of every row of x into z, and a square of it that y has for every row."""
    tile, one = f"({rows},{cols}); ({cols},1)", f"({rows},1); (1,1)"
    graph = parse_igraph(
        f"""igraph kernel on host parallel (1, 1) {{
x = iPointer(dram, {dtype}, ({rows}, {cols}), in)
z = iPointer(dram, {dtype}, ({rows}, 1), out)
y = iPointer(dram, {dtype}, ({rows}, 1), out)
a = iPointer(reg, {dtype}, {rows * cols})
m = iPointer(reg, {dtype}, {rows})
s = iPointer(reg, {dtype}, {rows})
move.dram.reg.{dtype} a[0; {tile}], x[0; {tile}]
reduce.{kind}.row.unit.{dtype} m[0; {one}], a[0; {tile}]
binary.mul.{dtype} s[0; {one}], m[0; {one}], m[0; {one}]
move.reg.dram.{dtype} z[0; {one}], m[0; {one}]
move.reg.dram.{dtype} y[0; {one}], s[0; {one}]
}}""",
        hw,
    )
    name = {"fp32": "float32", "int32": "int32", "fp16": "float16"}[dtype]
    shapes = {"x": (rows, cols), "z": (rows, 1), "y": (rows, 1)}
    params = [tirx.decl_buffer(shape, name, name=each) for each, shape in shapes.items()]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return lower(graph, empty.with_attr({"global_symbol": "kernel", "tirx.noalias": True}))


def compiled(func: tirx.PrimFunc) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """What a kernel makes of rows."""
    code = tvm.compile(tvm.IRModule({"kernel": func}), target=llvm_target())["kernel"]

    def run(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = [tvm.runtime.tensor(np.zeros((len(x), 1), x.dtype)) for _ in range(2)]
        code(tvm.runtime.tensor(x), *out)
        return out[0].numpy()[:, 0], out[1].numpy()[:, 0]

    return run


@pytest.mark.parametrize("rows", ROWS)
def test_sums_of_all_lengths(rows: int) -> None:
    """Integers, which are exact: no column counts twice, none is left out, and results are in order."""
    for cols in COLUMNS:
        x = np.random.default_rng(cols).integers(-50, 50, (rows, cols)).astype("int32")
        total, square = compiled(kernel(rows, cols, "add", "int32"))(x)
        np.testing.assert_array_equal(total, x.sum(1))
        np.testing.assert_array_equal(square, x.sum(1) ** 2)


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extremes_keep_nan_in_its_row(kind: str) -> None:
    """Wherever in its row a NaN is, also in columns that are made twice; infinities count."""
    rows, cols = 10, 37
    run = compiled(kernel(rows, cols, kind))
    x = np.random.default_rng(0).standard_normal((rows, cols)).astype("float32")
    for place in (0, 7, 29, 31, 33, 36):
        given = x.copy()
        given[3, place], given[5, place] = np.nan, np.inf if kind == "max" else -np.inf
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(run(given)[0], getattr(given, kind)(1))


def test_half_precision_is_rounded_once() -> None:
    """Sums of fp16 are held in fp32 until a row is done."""
    x = np.random.default_rng(0).standard_normal((16, 100)).astype("float16")
    found, _ = compiled(kernel(16, 100, "add", "fp16"))(x)
    wide = x.astype("float64").sum(1)
    assert np.abs(found - wide).max() <= np.spacing(np.abs(wide).astype("float16")).max()


def test_blocks_are_used_where_a_row_leaves_a_vector() -> None:
    """Of enough rows; else every row goes across its lanes by itself."""
    assert "partials" in str(kernel(8, 64, "add"))
    assert "partials" not in str(kernel(3, 64, "add"))
    assert "partials" not in str(kernel(8, 5, "add"))


@pytest.mark.parametrize("lanes", [4, 8])
def test_lanes_of_several_vectors(lanes: int) -> None:
    """Result k is what the lanes of vector k make: a matrix of numbers of which no two sums are alike."""
    code = Code()
    given = tirx.decl_buffer((lanes * lanes,), "float32", name="given", layout=None)
    made = tirx.decl_buffer((lanes,), "float32", name="made", layout=None)

    def vector(row: int) -> tirx.Expr:
        return tirx.BufferLoad(
            given, [tirx.Ramp(tirx.const(row * lanes, "int64"), tirx.const(1, "int64"), lanes)]
        )

    total = across(code, [code.bind(vector(row)) for row in range(lanes)], COMBINE["add"])
    code.add(
        tirx.BufferStore(made, total, [tirx.Ramp(tirx.const(0, "int64"), tirx.const(1, "int64"), lanes)])
    )
    func = tirx.PrimFunc([given, made], code.statement()).with_attr("global_symbol", "kernel")
    run = tvm.compile(tvm.IRModule({"kernel": func}), target=llvm_target())["kernel"]
    x = (3.0 ** np.arange(lanes)[:, None] * np.arange(1, lanes + 1)).astype("float32")
    out = tvm.runtime.tensor(np.zeros(lanes, "float32"))
    run(tvm.runtime.tensor(x.reshape(-1)), out)
    np.testing.assert_array_equal(out.numpy(), x.sum(1))
