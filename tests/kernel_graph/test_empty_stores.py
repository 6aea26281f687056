# SPDX-License-Identifier: Apache-2.0
"""Running sums of no rows write nothing: TVM's loops store a first element that there is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax, te, tirx
from uir_tvm.kernel_graph.empty_stores import without_empty_stores
from uir_tvm.kernel_graph.legalize import legalize

from .programs import module

OPERATORS: dict[str, Any] = {"cumsum": np.cumsum, "cumprod": np.cumprod}


def _lowered(name: str) -> Any:
    """The function of an operator along the open axis of (n, 16)."""
    spec = {"x": ((tvm.ir.Var("n", "int64"), 16), "float32")}
    mod = module(spec, lambda emit, x: emit(getattr(relax.op, name)(x, axis=0)))
    functions = legalize(mod).functions.values()
    return next(each for each in functions if isinstance(each, tirx.PrimFunc))


def _aligned() -> np.ndarray:
    """Six rows of 64 bytes, each at a multiple of them."""
    spare = np.zeros(7 * 16, "float32")
    return spare[-spare.ctypes.data % 64 // 4 :][:96].reshape(6, 16)


@pytest.mark.parametrize("name", OPERATORS)
def test_memory_behind_no_rows_stays_as_it_was(name: str) -> None:
    run = tvm.compile(_lowered(name).with_attr("global_symbol", name), target="llvm")
    memory, rows = _aligned(), _aligned()
    memory[:], rows[:] = 7, np.linspace(0.5, 1.5, 96).reshape(6, 16)
    for count in (0, 1, 4):
        run(*(tvm.runtime.from_dlpack(each[1 : 1 + count]) for each in (rows, memory)))
        np.testing.assert_allclose(memory[1 : 1 + count], OPERATORS[name](rows[1 : 1 + count], axis=0), 1e-6)
        assert (memory[0] == 7).all() and (memory[1 + count :] == 7).all()


def test_blocks_that_are_told_stay_as_they_are() -> None:
    n = te.var("n", "int64")
    x = te.placeholder((n, 4), name="x")
    mod = tvm.IRModule({"main": te.create_prim_func([x, te.compute((n, 4), lambda i, j: x[i, j] + 1)])})
    assert without_empty_stores(mod).same_as(mod)
