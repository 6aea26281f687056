# SPDX-License-Identifier: Apache-2.0
"""Products of one to four rows, whose tiles are of several panels of the weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.library import cpu, reference
from uir_tvm.library.cpu import MatmulAttrs

Array = np.ndarray[Any, Any]

#: Fewer columns than a panel, one panel to six of 16 columns, and those whose last panel is another.
COLUMNS = (7, 16, 32, 48, 64, 80, 96, 72, 88, 101, 150)


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def product(m: int, n: int, **how: Any) -> tuple[Array, Array]:
    """The result of the library, and what float64 says."""
    k = 37
    attrs = MatmulAttrs.contiguous((m, k), (k, n), packed=True, bias=True, **how)
    if cpu.describe(attrs)["plan"] != "tiles":
        pytest.skip("this CPU's products of few rows are the library's")
    a, b, bias, residual = random(1, 5, k)[:m], random(2, k, n), random(3, n), random(4, 5, n)[:m]
    more = {"bias": bias} | ({"residual": residual} if attrs.residual != "none" else {})
    out = np.full((m, n), 9, np.float32)
    weight = cpu.pack_weight(tvm.runtime.tensor(b), attrs)
    result = tvm.runtime.tensor(out)
    operands = [tvm.runtime.tensor(each) for each in more.values()]
    tvm_ffi.get_global_func(cpu.MATMUL)(tvm.runtime.tensor(a), weight, *operands, attrs.to_json(), result)
    return result.numpy(), reference.matmul(attrs, a, b, **more, out=out)


@pytest.mark.parametrize("how", [{}, {"residual": "before_activation", "activation": "relu"}])
@pytest.mark.parametrize("n", COLUMNS)
def test_sums_are_those_of_one_panel_at_a_time(threads: int, n: int, how: dict[str, str]) -> None:
    """Of five rows a tile has one panel: each of fewer rows has the same sums, bit by bit."""
    alone, _ = product(5, n, **how)
    for m in (1, 2, 3, 4):
        got, want = product(m, n, **how)
        np.testing.assert_array_equal(got, alone[:m], err_msg=f"{m} rows")
        assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max()


@pytest.mark.parametrize("activation", ["none", "silu", "tanh", "clip(-2.0,1.5)"])
@pytest.mark.parametrize("residual", ["none", "after_activation"])
def test_what_follows_sums_of_several_panels(activation: str, residual: str) -> None:
    for m in (1, 2, 3, 4):
        got, want = product(m, 96, activation=activation, residual=residual)
        assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max()
