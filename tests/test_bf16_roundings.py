# SPDX-License-Identifier: Apache-2.0
"""TVM's own lowering keeps casts to bf16 that are written out in bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tirx
from uir_tvm.bf16_roundings import keep_bf16_roundings
from uir_tvm.runtime.kernel import tensor_of

from .stock import stock

BF16, FLOAT = "bfloat16", "float32"
#: Ties to both sides, the least and the greatest of fp32, denormals, infinities, NaN.
EDGES = np.array(
    [1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 3.4e38, -3.4e38, 3.3895e38, 2**-126, 1e-40, 1e-45, 0.0, -0.0]
    + [np.inf, -np.inf, np.nan, 1.0, 65504.0],
    FLOAT,
)


def rounding(size: int, given: str = FLOAT, result: str = FLOAT) -> tirx.PrimFunc:
    """y = x as bf16 and then as another dtype."""
    x = te.placeholder((size,), given, "x")

    def element(i: Any) -> Any:
        made = tirx.Cast(BF16, x[i])
        return made if result == BF16 else tirx.Cast(result, made)

    return te.create_prim_func([x, te.compute((size,), element, "y")])


def run(func: tirx.PrimFunc, x: np.ndarray, result: str = FLOAT) -> np.ndarray:
    out = np.zeros(x.shape, getattr(ml_dtypes, result, result))
    tensor = tensor_of(out, out.shape)
    stock(func)["main"](tensor_of(x, x.shape), tensor)
    return np.asarray(tensor.numpy().view(out.dtype))


def numbers() -> np.ndarray:
    """Random numbers of all magnitudes, and `EDGES`."""
    bits = np.random.default_rng(0).integers(0, 0x7F800000, 5000, dtype=np.uint32)
    bits[::2] |= 1 << 31
    return np.concatenate([EDGES, bits.view(FLOAT)])


def meant(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(FLOAT).astype(ml_dtypes.bfloat16)


def test_every_number_is_rounded_as_ml_dtypes_says() -> None:
    x = numbers()
    func = rounding(x.size)
    np.testing.assert_array_equal(run(keep_bf16_roundings(func), x), meant(x).astype(FLOAT))


def test_tvm_alone_loses_them() -> None:
    """What the module is for; where this fails it may go."""
    x = numbers()[EDGES.size :]
    assert (run(rounding(x.size), x) != meant(x).astype(FLOAT)).mean() > 0.9


@pytest.mark.parametrize("given", ["float64", "int32", "float16"])
def test_numbers_of_other_dtypes(given: str) -> None:
    x = np.random.default_rng(0).uniform(-30000, 30000, 300).astype(given)
    func = rounding(x.size, given)
    np.testing.assert_array_equal(run(keep_bf16_roundings(func), x), meant(x).astype(FLOAT))


def test_stored_numbers() -> None:
    x = numbers()
    func = rounding(x.size, result=BF16)
    found = run(keep_bf16_roundings(func), x, BF16)
    np.testing.assert_array_equal(found.astype(FLOAT), meant(x).astype(FLOAT))


@pytest.mark.parametrize("result", [FLOAT, BF16])
def test_operands_of_bf16(result: str) -> None:
    """Loads of bf16 are legalised within a cast too; so is one cast within another."""
    size = 300
    x = te.placeholder((size,), BF16, "x")

    def element(i: Any) -> Any:
        third = tirx.Cast(BF16, tirx.Cast(FLOAT, x[i]) * tirx.const(1 / 3, FLOAT))
        made = tirx.Cast(BF16, tirx.Cast(FLOAT, third) + tirx.const(5, FLOAT))
        return made if result == BF16 else tirx.Cast(FLOAT, made)

    func = te.create_prim_func([x, te.compute((size,), element, "y")])
    given = meant(np.random.default_rng(0).uniform(-90, 90, size))
    third = meant(given.astype(FLOAT) * np.float32(1 / 3)).astype(FLOAT)
    found = run(keep_bf16_roundings(func), given, result)
    np.testing.assert_array_equal(found.astype(FLOAT), meant(third + np.float32(5)).astype(FLOAT))


def test_other_casts_stay() -> None:
    x = te.placeholder((4,), BF16, "x")
    func = te.create_prim_func(
        [x, te.compute((4,), lambda i: tirx.Cast("float16", tirx.Cast(FLOAT, x[i])), "y")]
    )
    assert keep_bf16_roundings(func).same_as(func)
