# SPDX-License-Identifier: Apache-2.0
"""Kernels whose sizes are known at the call: compiled once, right at every size that they take."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm_ffi.structural import structural_map
from uir_tvm.bound_kernel import symbols_in
from uir_tvm.errors import SizeError
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import try_kernel
from uir_tvm.schedule.blocks import collect

from tests.open_functions import OPEN, kernel_of


def test_large_results_bypass_the_caches_and_are_right() -> None:
    """Some hundred thousand rows, more than a cache holds."""
    function = OPEN["flat"]
    kernel = kernel_of(function.func(), "uir-cpu")
    inputs = function.inputs({"n": 300_001})
    out = tvm.runtime.tensor(np.zeros((300_001, 96), "float32"))
    kernel(*map(tvm.runtime.tensor, inputs), out)
    np.testing.assert_array_equal(out.numpy(), inputs[0] * inputs[1])


@pytest.mark.parametrize(("n", "fine"), [(2, True), (64, True), (0, False), (3, False), (66, False)])
def test_sizes_that_a_kernel_does_not_take(n: int, fine: bool) -> None:
    function = OPEN["rows"]
    kernel = kernel_of(with_sizes(function.func(), {"n": Size("n", 2, 64, 2)}), "uir-cpu")
    inputs = function.inputs({"n": n})
    out = tvm.runtime.tensor(np.zeros((n, 96), "float32"))
    tensors = [*map(tvm.runtime.tensor, inputs), out]
    if fine:
        kernel(*tensors)
        np.testing.assert_allclose(out.numpy(), function.reference(*inputs), rtol=1e-5, atol=1e-6)
        return
    with pytest.raises(SizeError, match="2 to 64 and a multiple of 2") as error:
        kernel(*tensors)
    assert error.value.where == "n"
    assert not out.numpy().any()


def test_short_rows_are_less_work_than_long_ones() -> None:
    """So many short rows as are little work stay on the caller's thread, of the longest fewer."""
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = te.placeholder((n, m), name="x")
    func = te.create_prim_func([x, te.compute((n, m), lambda i, j: x[i, j] + 1.0, "y")])
    func = with_sizes(func, {"n": Size("n", 1, 4096), "m": Size("m", 1, 512)})
    record = try_kernel(func, tvm.target.Target("uir-cpu"), "short_rows")
    assert record.refusal is None, record.refusal
    branches = [b for b in collect(record.lowered.body, tirx.IfThenElse) if b.else_case is not None]
    (choice,) = [b for b in branches if _is_shared(b.else_case) and not _is_shared(b.then_case)]

    def alone(rows: int, length: int) -> bool:
        bound = {"n": rows, "m": length}
        shapes = {v: tirx.IntImm("int64", bound[str(v.name)]) for v in symbols_in(record.lowered)}
        found = tvm.sym.Analyzer().simplify(structural_map(choice.condition, (tvm.ir.Var, shapes.get)))
        assert isinstance(found, tirx.IntImm)
        return bool(found)

    assert alone(1, 512) and alone(8, 37)
    most = max(rows for rows in range(1, 4097) if alone(rows, 512))
    shorter = max(rows for rows in range(1, 4097) if alone(rows, 32))
    assert 8 * most <= shorter < 4096 and not alone(4096, 512)


def _is_shared(stmt: tirx.Stmt) -> bool:
    """Whether threads share a loop of it."""
    return any(int(loop.kind) == tirx.ForKind.PARALLEL for loop in collect(stmt, tirx.For))
