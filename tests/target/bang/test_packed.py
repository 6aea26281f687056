# SPDX-License-Identifier: Apache-2.0
"""Rows of open length that copies alone touch lie packed: one run instead of segments, the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording
from uir_tvm.runtime.modelled import recording as modelled


def built(
    dtype: str, axes: tuple[int, int], least: int, added: bool = False
) -> tuple[tvm.runtime.Module, str]:
    """An (n, s) matrix turned, or as it is with one added: at most 64 rows of 200; and its text."""
    n, s = tirx.Var("n", "int64"), tirx.Var("s", "int64")
    x = te.placeholder((n, s), dtype, name="x")
    y = te.compute(x.shape, lambda i, j: x[i, j] + tirx.const(1, dtype), "y") if added else x
    func = te.create_prim_func([x, topi.transpose(y, axes)])
    func = with_sizes(func, {"n": Size("n", least, 64), "s": Size("s", least, 200)})
    with recording(CompileOptions(variants="none")) as records:
        module = tvm.tirx.build(tvm.IRModule({"main": func}), target="uir-bang")["main"]
    return module, str(records["main"].products["source"].source)


def assert_turned(module: tvm.runtime.Module, dtype: str, n: int, s: int, more: int = 0) -> None:
    given = np.random.default_rng(n).integers(-100, 100, (n, s)).astype(dtype)
    tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (given, np.zeros((s, n), dtype))]
    with modelled():
        module(*tensors)
    np.testing.assert_array_equal(tensors[1].numpy(), given.T + more)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_turned_tile_is_stored_as_one_run(dtype: str) -> None:
    """A tile (128,64) has as many columns as x has rows: its turn and its store follow that number."""
    module, text = built(dtype, (1, 0), 1)
    (store,) = re.findall(r"__memcpy_async\(T_transpose.*, NRAM2GDRAM(.*)\);", text)
    assert store == "", "no strides, no segments"
    assert re.search(r"__bang_transpose\(.*, cols, \d+\)", text), text
    for n, s in ((64, 200), (1, 1), (1, 200), (64, 1), (37, 129), (8, 128)):
        assert_turned(module, dtype, n, s)


def test_of_no_rows_nothing_is_turned() -> None:
    """The vendor's function takes no height of zero."""
    module, text = built("float32", (1, 0), 0)
    assert re.search(r"if \(cols > 0\)[^;]*__bang_transpose", text), text
    for n, s in ((0, 5), (5, 0), (3, 130)):
        assert_turned(module, "float32", n, s)


def test_what_is_computed_with_keeps_the_width_of_its_border() -> None:
    """A function works on whole tiles: rows stay where the graph has them."""
    module, text = built("float32", (1, 0), 1, added=True)
    (store,) = re.findall(r"__memcpy_async\(T_transpose.*, NRAM2GDRAM(.*)\);", text)
    assert store.startswith(", "), "a segment for each row"
    for n, s in ((64, 200), (37, 129)):
        assert_turned(module, "float32", n, s, 1)
