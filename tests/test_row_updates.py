# SPDX-License-Identifier: Apache-2.0
"""Functions that write rows in place: the iGraph, and TVM's own lowering, write these rows and no others."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from uir_tvm import hardware
from uir_tvm.igraph import interpreter
from uir_tvm.row_updates import Rows, row_update
from uir_tvm.schedule import apply_default

from tests.extracted import extracted
from tests.stock import stock

CPU = hardware.get("avx512-2core")
#: Rows -> indices: the last two lie beyond the rows, on both sides.
CASES = {
    "at a place": (Rows(2, 9, 3, 5, begin=1, step=3), None),
    "one row": (Rows(3, 9, 1, 5, sets=1), [[-2]]),
    "rows for all": (Rows(2, 9, 4, 5, sets=1), [[3, -9, 9, -10]]),
    "rows for each": (Rows(2, 9, 3, 5, sets=2, own=1), [[3, 8, 2**40], [0, -1, -(2**40)]]),
    "elements": (Rows(2, 9, 3, 1, sets=1), [[4, 9, 0]]),
}


@pytest.mark.parametrize("case", CASES)
def test_rows_are_written_and_no_others(case: str) -> None:
    rows, index = CASES[case]
    rng = np.random.default_rng(0)
    values = rng.standard_normal(rows.values).astype("float32")
    memory = rng.standard_normal((rows.outer * rows.length, rows.inner)).astype("float32")
    want = memory.copy().reshape(rows.outer, rows.length, rows.inner)
    for o in range(rows.outer):
        for j in range(rows.count):
            at = rows.begin + j * rows.step if index is None else index[o * rows.own][j]
            if -rows.length <= at < rows.length:
                want[o, at] = values[o, j]
    want = want.reshape(memory.shape)
    given = [values, *([] if index is None else [np.array(index)]), memory]
    func = row_update(rows, "float32", "" if index is None else "int64")
    graph = extracted(apply_default(func, CPU), CPU)
    np.testing.assert_array_equal(interpreter.run(graph, *given)[-1].reshape(want.shape), want)
    assert {pointer.role for pointer in graph.pointers if pointer.name == "memory"} == {"inout"}
    assert not any(iop.op == "gather" for iop, _ in graph.walk()), "what is not written is not read"
    tensors = [tvm.runtime.tensor(each) for each in given]
    stock(func)["main"](*tensors)
    np.testing.assert_array_equal(tensors[-1].numpy(), want)
