# SPDX-License-Identifier: Apache-2.0
"""Exponentials with sums along rows or columns: two vectors side by side where registers are few."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.hardware import get
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.target.cpu.lower import lower

from .support import HOST, execute, signature

ROWS = 3


def softmax(cols: int, model: str = "avx2-4core", axis: str = "row") -> IGraph:
    """The exponentials of rows, or columns, less their maximum, over their sum."""
    tile = f"({ROWS},{cols}); ({cols},1)"
    one = f"({ROWS},1); (1,1)" if axis == "row" else f"(1,{cols}); ({cols},1)"
    graph = parse_igraph(
        f"igraph kernel on host parallel (1, 1) {{\n"
        f"x = iPointer(dram, fp32, {ROWS * cols}, in)\nz = iPointer(dram, fp32, {ROWS * cols}, out)\n"
        + "".join(f"{name} = iPointer(reg, fp32, {ROWS * cols})\n" for name in "abcde")
        + f"""m = iPointer(reg, fp32, {ROWS * cols})
        t = iPointer(reg, fp32, {ROWS * cols})
        move.dram.reg.fp32 a[0; {tile}], x[0; {tile}]
        reduce.max.{axis}.unit.fp32 m[0; {one}], a[0; {tile}]
        broadcast.{axis}.unit.fp32 b[0; {tile}], m[0; {one}]
        binary.sub.fp32 c[0; {tile}], a[0; {tile}], b[0; {tile}]
        unary.exp.fp32 d[0; {tile}], c[0; {tile}]
        reduce.add.{axis}.unit.fp32 t[0; {one}], d[0; {tile}]
        broadcast.{axis}.unit.fp32 b[0; {tile}], t[0; {one}]
        binary.div.fp32 e[0; {tile}], d[0; {tile}], b[0; {tile}]
        move.reg.dram.fp32 z[0; {tile}], e[0; {tile}]
        }}""",
        HOST,
    )
    return graph.replace(hardware=get(model))


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize(
    ("cols", "model", "lanes", "absent"),
    [(64, "avx2-4core", 16, 32), (72, "avx2-4core", 8, 16), (64, "avx512-2core", 16, 32)],
)
def test_two_registers_at_a_time(cols: int, model: str, lanes: int, absent: int, axis: str) -> None:
    """On AVX2, of rows that are whole pairs; AVX-512 has registers for one vector after the other."""
    graph = softmax(cols, model, axis)
    text = str(lower(graph, signature(graph)))
    assert f"float32x{lanes}" in text and f"float32x{absent}" not in text


@pytest.mark.parametrize("cols", [16, 72])
def test_columns_of_both_kinds(cols: int) -> None:
    """Sums along columns, of which one has a NaN, and one nothing but minus infinity in the others."""
    x = np.random.default_rng(cols).standard_normal((ROWS, cols)).astype("float32")
    x[1, cols // 2], x[1:, 3] = np.nan, -np.inf
    (got,) = execute(softmax(cols, axis="col"), [x])
    exact = np.exp(x.astype("float64") - x.max(0))
    np.testing.assert_allclose(got.reshape(x.shape), exact / exact.sum(0), rtol=2e-6)


@pytest.mark.parametrize("cols", [16, 64, 72])
def test_rows_of_both_kinds(cols: int) -> None:
    """Sums, and what becomes of NaN and infinities in a row: it is NaN, and the others are not."""
    x = np.random.default_rng(cols).standard_normal((ROWS, cols)).astype("float32")
    x[1, cols // 2] = np.nan
    x[2, ::3] = -np.inf
    (got,) = execute(softmax(cols), [x])
    exact = np.exp(x.astype("float64") - x.max(-1, keepdims=True))
    want = exact / exact.sum(-1, keepdims=True)
    np.testing.assert_allclose(got.reshape(x.shape), want, rtol=2e-6)
