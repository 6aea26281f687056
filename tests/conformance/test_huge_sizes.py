# SPDX-License-Identifier: Apache-2.0
"""Sizes whose elements leave 31 and 63 bits, on every target: a kernel, or a refusal before it runs."""

from __future__ import annotations

import mmap
import re

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.errors import SizeError, UirError
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording
from uir_tvm.target.registry import TARGETS

from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of
from tests.open_functions import kernel_of, run_at


def doubled(high: int) -> tirx.PrimFunc:
    """Rows of 24, at least one of them, up to ``high``."""
    rows = tirx.Var("rows", "int64")
    x = te.placeholder((rows, 24), name="x")
    func = te.create_prim_func([x, te.compute((rows, 24), lambda i, j: x[i, j] * 2.0, "y")])
    return with_sizes(func, {"rows": Size("rows", 1, high)})


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", TARGETS)
def test_elements_beyond_31_bits(target: str) -> None:
    """One kernel, right at small sizes; a size outside of its range is refused before it runs."""
    kernel = kernel_of(doubled(1 << 40), target)
    for rows in (1, 2, 67):
        x = np.arange(rows * 24, dtype="float32").reshape(rows, 24)
        np.testing.assert_array_equal(*run_at(kernel, [x], 2 * x, target))
    with pytest.raises(SizeError, match="rows"):
        run_at(kernel, [np.zeros((0, 24), "float32")], np.zeros((0, 24)), target)


@pytest.mark.parametrize("target", TARGETS)
def test_elements_beyond_63_bits(target: str) -> None:
    """No address says where they are: the compiler refuses the range, by type."""
    with recording(CompileOptions(faults="raise")) as records:
        tvm.build(tvm.IRModule({"main": doubled(1 << 60)}), target=target)
    (record,) = records.values()
    assert record.refusal is not None
    assert isinstance(record.refusal.error, UirError)
    assert "smaller upper bounds" in str(record.refusal.error)


def looked_up(index: str) -> tirx.PrimFunc:
    """Some rows of a table of bytes that may have 2**40 rows of 24."""
    k, m = tirx.Var("k", "int64"), tirx.Var("m", "int64")
    at, table = te.placeholder((k,), index, "at"), te.placeholder((m, 24), "int8", "table")
    func = te.create_prim_func([at, table, topi.take(table, at, 0, mode="fast")])
    return with_sizes(func, {"k": Size("k", 1, 64), "m": Size("m", 1, 1 << 40)})


@pytest.mark.compares_itself
@pytest.mark.parametrize("index", ["int64", "int32"])
def test_a_table_of_more_than_31_bits_of_elements(index: str) -> None:
    """Its memory is the system's to give, page by page: rows that are read have some."""
    kernel = kernel_of(looked_up(index), "uir-cpu")
    rows = (1 << 31) // 24 + 1000
    table = np.frombuffer(mmap.mmap(-1, rows * 24), np.int8).reshape(rows, 24)
    at = np.array([0, rows - 1, rows // 2, rows - 7], index)
    for number, row in enumerate(at):
        table[row] = np.arange(24) + number
    out = tvm.runtime.empty((4, 24), "int8")
    kernel(tvm.runtime.tensor(at), tvm.runtime.from_dlpack(table), out)
    np.testing.assert_array_equal(out.numpy(), table[at])


@pytest.mark.parametrize("row", DEVICE_TARGETS, ids=name_of)
def test_devices_count_the_rows_of_such_a_table_in_64_bits(row: DeviceTarget) -> None:
    """How many there are, and which one is read; not so of tables whose range is small."""
    texts = {}
    for high in (1 << 40, 1 << 20):
        func = with_sizes(looked_up("int64"), {"k": Size("k", 1, 64), "m": Size("m", 1, high)})
        with recording(CompileOptions(faults="raise", device="model")) as records:
            tvm.build(tvm.IRModule({"main": func}), target=row.target())
        (record,) = records.values()
        assert record.refusal is None
        texts[high] = str(record.products["source"].source)
    rows = re.compile(r"const (\w+) \w+ = [^;\n]*\bsize_m\b[^;\n]*;|const (\w+) index = ")
    found = {high: {a or b for a, b in rows.findall(text)} for high, text in texts.items()}
    assert found[1 << 40] == {"int64_t"}, texts[1 << 40]
    assert "int64_t" not in found[1 << 20]
