# SPDX-License-Identifier: Apache-2.0
"""Kernels whose sizes are known at the call: compiled once, right at every size that they take."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from uir_tvm.errors import SizeError
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes

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
