# SPDX-License-Identifier: Apache-2.0
"""Products of 16 bits with a packed weight, which is read as it is stored, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.hardware import host_cpu
from uir_tvm.library import cpu
from uir_tvm.library.attrs import MatmulAttrs, OperandLayout

VECTORS = [str(name) for name in tvm_ffi.get_global_func("uir.library.cpu.quantized_vectors")()]
MATMUL = tvm_ffi.get_global_func(cpu.MATMUL)


@pytest.fixture(params=VECTORS)
def vectors(request: pytest.FixtureRequest) -> Iterator[str]:
    choose = tvm_ffi.get_global_func("uir.library.cpu.set_quantized_vectors")
    choose(request.param)
    yield request.param
    choose(VECTORS[0])


def run(attributes: MatmulAttrs, x: Any, w: Any, shape: tuple[int, ...], *more: Any) -> np.ndarray:
    weight = cpu.pack_weight(w, attributes)
    out = tvm.runtime.tensor(np.zeros(shape, w.dtype))
    MATMUL(tvm.runtime.tensor(x), weight, *map(tvm.runtime.tensor, more), attributes.to_json(), out)
    return out.numpy()


def halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float16)


def reads_as_stored(dtype: str) -> bool:
    """Whether this CPU's products do: oneDNN has bfloat16 where there are instructions for it."""
    return VECTORS[0] != "any" and not (dtype == "bfloat16" and "avx512_bf16" in host_cpu.cpu_flags())


@pytest.mark.parametrize(("dtype", "rounding"), [("float16", 2**-11), ("bfloat16", 2**-8)])
@pytest.mark.parametrize("m", [1, 3, 40])
@pytest.mark.parametrize(("k", "n"), [(64, 48), (37, 21), (130, 70), (700, 21)])
def test_rounded_once(vectors: str, dtype: str, rounding: float, m: int, k: int, n: int) -> None:
    """Few and many rows, sizes that fill no vector and no tile; bias, residual and activation."""
    rng = np.random.default_rng(m * k * n)
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x, w, bias, residual = (halves(rng, *each).astype(kind) for each in ((m, k), (k, n), (n,), (m, n)))
    attributes = MatmulAttrs.contiguous(
        (m, k), (k, n), packed=True, bias=True, residual="after_activation", activation="relu", alpha=0.5
    )
    wide = [each.astype(np.float64) for each in (x, w, bias, residual)]
    wanted = np.maximum(0.5 * wide[0] @ wide[1] + wide[2], 0) + wide[3]
    got = run(attributes, x, w, (m, n), bias, residual)
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=rounding + 1e-5, atol=1e-5 * np.sqrt(k))
    assert (cpu.describe(attributes, dtype)["plan"] == "halves") == reads_as_stored(dtype)


@pytest.mark.parametrize("m", [5, 24, 25, 130])
def test_a_row_is_the_same_whatever_rows_are_beside_it(vectors: str, m: int) -> None:
    """Whether the weight is widened in registers or written out for all rows."""
    rng = np.random.default_rng(m)
    x, w = halves(rng, m, 200), halves(rng, 200, 70)
    got = run(MatmulAttrs.contiguous((m, 200), (200, 70), packed=True), x, w, (m, 70))
    alone = run(MatmulAttrs.contiguous((5, 200), (200, 70), packed=True), x[-5:].copy(), w, (5, 70))
    if not vectors.startswith("amx"):
        np.testing.assert_array_equal(got[-5:], alone)


def test_where_operands_lie(vectors: str) -> None:
    """Rows of a batch between other numbers, a turned weight, a turned result."""
    rng = np.random.default_rng(5)
    x, w = halves(rng, 2, 3, 4, 24), halves(rng, 20, 24)
    attributes = MatmulAttrs(
        batch=(2, 3),
        m=4,
        n=20,
        k=24,
        a=OperandLayout((3 * 96, 96, 24, 1)),
        b=OperandLayout((0, 0, 1, 24)),
        out=OperandLayout((3 * 80, 80, 1, 4)),
        packed=True,
    )
    got = run(attributes, x, w, (2, 3, 20, 4))
    wanted = (x.astype(np.float64) @ w.T.astype(np.float64)).swapaxes(-1, -2)
    np.testing.assert_allclose(got, wanted, rtol=2**-11 + 1e-5, atol=1e-4)


@pytest.mark.parametrize("m", [1, 33])
def test_numbers_that_are_none(vectors: str, m: int) -> None:
    """Infinite numbers and NaN stay in their rows and columns, on either side."""
    rng = np.random.default_rng(6)
    x, w = np.abs(halves(rng, m, 40)), np.abs(halves(rng, 40, 33))
    w[3, 5], w[7, 6] = np.inf, np.nan
    got = run(MatmulAttrs.contiguous((m, 40), (40, 33), packed=True), x, w, (m, 33))
    assert np.isinf(got[:, 5]).all() and np.isnan(got[:, 6]).all() and np.isfinite(got[:, 7:]).all()
    x[0, 2] = np.inf
    got = run(MatmulAttrs.contiguous((m, 40), (40, 33), packed=True), x, w, (m, 33))
    assert np.isinf(got[0, :5]).all() and np.isfinite(got[1:, 7:]).all()
