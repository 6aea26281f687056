# SPDX-License-Identifier: Apache-2.0
"""Kernels whose sizes are known at the call: compiled once, right at every size that they take."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from uir_tvm import CompileOptions
from uir_tvm.errors import SizeError
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording

from tests.open_functions import OPEN

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 31, 64, 101)


def build(func: tvm.tirx.PrimFunc) -> tvm.runtime.Module:
    """The kernel, which must have an iGraph."""
    with recording(CompileOptions(faults="raise")) as records:
        built = tvm.build(tvm.IRModule({"main": func}), target="uir-cpu")
    (record,) = records.values()
    assert record.refusal is None, record.refusal
    return built["main"]


@pytest.mark.parametrize("name", OPEN)
def test_one_kernel_for_all_sizes(name: str) -> None:
    function = OPEN[name]
    kernel = build(function.func())
    for n in SIZES:
        sizes = {"n": n, **({"m": n // 2 + 1} if "m" in function.sizes else {})}
        inputs = function.inputs(sizes)
        want = function.reference(*inputs)
        out = tvm.runtime.tensor(np.full(want.shape, np.nan, "float32"))
        kernel(*map(tvm.runtime.tensor, inputs), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-5, err_msg=f"n = {n}")


def test_large_results_bypass_the_caches_and_are_right() -> None:
    """Some hundred thousand rows, more than a cache holds."""
    function = OPEN["flat"]
    kernel = build(function.func())
    inputs = function.inputs({"n": 300_001})
    out = tvm.runtime.tensor(np.zeros((300_001, 96), "float32"))
    kernel(*map(tvm.runtime.tensor, inputs), out)
    np.testing.assert_array_equal(out.numpy(), inputs[0] * inputs[1])


@pytest.mark.parametrize(("n", "fine"), [(2, True), (64, True), (0, False), (3, False), (66, False)])
def test_sizes_that_a_kernel_does_not_take(n: int, fine: bool) -> None:
    function = OPEN["rows"]
    kernel = build(with_sizes(function.func(), {"n": Size("n", 2, 64, 2)}))
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
