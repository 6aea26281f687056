# SPDX-License-Identifier: Apache-2.0
"""Narrow floats in fp32: operations round no more, casts of other dtypes round as they did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tvm import te, tirx
from uir_tvm.runtime.kernel import tensor_of
from uir_tvm.schedule.blocks import collect
from uir_tvm.schedule.wide_values import NARROW, widen_values
from uir_tvm.verify.function_side import built_by_tvm

ROWS, COLS = 6, 40
FLOAT = "float32"


def cast(dtype: str, *path: str) -> Callable[[Any], Any]:
    """Casts to one dtype after the other."""

    def made(value: Any) -> Any:
        for each in (dtype, *path):
            value = tirx.Cast(each, value)
        return value

    return made


def func_of(function: Callable[..., Any], *dtypes: str, steps: Callable[..., Any] | None = None) -> Any:
    """y = function(x, ...) element by element, or ``steps(t, x, ...)`` of it, which lies in a buffer."""
    given = [te.placeholder((ROWS, COLS), dtype, f"x{n}") for n, dtype in enumerate(dtypes)]
    made = te.compute((ROWS, COLS), lambda *at: function(*(x[at] for x in given)), "t")
    if steps is not None:
        first = made
        made = te.compute((ROWS, COLS), lambda *at: steps(first[at], *(x[at] for x in given)), "y")
    return te.create_prim_func([*given, made])


def run(func: tirx.PrimFunc, *given: np.ndarray) -> np.ndarray:
    out = np.zeros((ROWS, COLS), getattr(ml_dtypes, str(func.params[-1].dtype), str(func.params[-1].dtype)))
    tensors = [tensor_of(each, each.shape) for each in (*given, out)]
    built_by_tvm(func, {"opt-level": 0})["main"](*tensors)
    return np.asarray(tensors[-1].numpy().view(out.dtype))


def casts(func: tirx.PrimFunc) -> list[str]:
    """What values are cast to, sorted."""
    return sorted(str(each.ty.dtype) for each in collect(func.body, tirx.Cast))


def narrow(dtype: str) -> Any:
    return np.dtype(getattr(ml_dtypes, dtype, dtype))


def numbers(dtype: str = FLOAT, seed: int = 0, scale: float = 1) -> np.ndarray:
    return (np.random.default_rng(seed).uniform(-2, 2, (ROWS, COLS)) * scale).astype(narrow(dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_a_cast_of_a_float_rounds(dtype: str) -> None:
    """x as a narrow float and back, beside a narrow tensor."""
    func = func_of(lambda x, n: cast(dtype, FLOAT)(x) * cast(FLOAT)(n), FLOAT, dtype)
    widened = widen_values(func)
    assert casts(widened) == sorted((dtype, FLOAT, FLOAT))
    x, n = numbers(), numbers(dtype, 1)
    wanted = x.astype(narrow(dtype)).astype(FLOAT) * n.astype(FLOAT)
    assert (wanted != x * n.astype(FLOAT)).any()
    np.testing.assert_array_equal(run(widened, x, n), wanted)


@pytest.mark.parametrize("dtype", NARROW)
def test_a_buffer_in_fp32_holds_what_was_rounded(dtype: str) -> None:
    """What a cast made lies in a buffer, which the second block computes with."""
    func = func_of(
        lambda x, n: cast(dtype)(x), FLOAT, dtype, steps=lambda t, x, n: cast(FLOAT)(t) - x + cast(FLOAT)(n)
    )
    widened = widen_values(func)
    (block,) = [b for b in collect(widened.body, tirx.BufferStore) if b.buffer.name == "t"]
    assert str(block.buffer.dtype) == FLOAT
    x, n = numbers(), numbers(dtype, 1)
    wanted = x.astype(narrow(dtype)).astype(FLOAT) - x + n.astype(FLOAT)
    np.testing.assert_array_equal(run(widened, x, n), wanted)


@pytest.mark.parametrize("dtype", NARROW)
def test_operations_between_narrow_values_do_not_round(dtype: str) -> None:
    """There are a cast of each load and the one that stores."""
    func = func_of(lambda n, m: n * m + n, dtype, dtype, steps=lambda t, n, m: t * m)
    widened = widen_values(func)
    assert casts(widened) == sorted([FLOAT] * 4 + [dtype])
    n, m = numbers(dtype), numbers(dtype, 1)
    a, b = n.astype(FLOAT), m.astype(FLOAT)
    np.testing.assert_array_equal(run(widened, n, m), ((a * b + a) * b).astype(narrow(dtype)))


@pytest.mark.parametrize("dtype", NARROW)
def test_functions_of_narrow_values_do_not_round(dtype: str) -> None:
    """Those that are computed in fp32, as TVM has them of bfloat16."""
    func = func_of(
        lambda n: cast(dtype)(te.exp(cast(FLOAT)(n))),
        dtype,
        steps=lambda t, n: cast(FLOAT)(t) * cast(FLOAT)(n),
    )
    assert casts(widen_values(func)) == [FLOAT, FLOAT]


@pytest.mark.parametrize("dtype", NARROW)
def test_sums_of_narrow_values_do_not_round(dtype: str) -> None:
    """As contractions have them; a sum of fp32 numbers does where it is cast."""

    def last_casts(given: str) -> list[str]:
        n = te.placeholder((ROWS, COLS), given, "n")
        m = te.placeholder((ROWS,), dtype, "m")
        k = te.reduce_axis((0, COLS), "k")
        total = te.compute((ROWS,), lambda i: te.sum(cast(FLOAT)(n[i, k]), axis=k), "total")
        rounded = te.compute((ROWS,), lambda i: cast(dtype)(total[i]), "rounded")
        made = te.compute((ROWS,), lambda i: cast(FLOAT)(rounded[i]) + cast(FLOAT)(m[i]), "y")
        stores = collect(widen_values(te.create_prim_func([n, m, made])).body, tirx.BufferStore)
        (store,) = [each for each in stores if each.buffer.name == "rounded"]
        return [str(each.ty.dtype) for each in collect(store.value, tirx.Cast)]

    assert last_casts(dtype) == []
    assert sorted(last_casts(FLOAT)) == sorted((dtype, FLOAT))


@pytest.mark.parametrize("dtype", NARROW)
def test_what_was_computed_in_fp32_is_rounded_where_it_is_cast(dtype: str) -> None:
    """A narrow tensor in a block of fp32; the next one casts that."""
    n = te.placeholder((ROWS, COLS), dtype, "n")
    wide = te.compute((ROWS, COLS), lambda *at: cast(FLOAT)(n[at]) * tirx.const(1.1, FLOAT), "wide")
    made = te.compute((ROWS, COLS), lambda *at: cast(dtype, FLOAT)(wide[at]), "y")
    given = numbers(dtype)
    exact = given.astype(FLOAT) * np.float32(1.1)
    found = run(widen_values(te.create_prim_func([n, made])), given)
    assert (found != exact).any()
    np.testing.assert_array_equal(found, exact.astype(narrow(dtype)).astype(FLOAT))


@pytest.mark.parametrize("dtype", NARROW)
def test_what_is_stored_is_rounded_once(dtype: str) -> None:
    """The store's own rounding is the one that was asked for."""
    widened = widen_values(func_of(lambda x, n: cast(dtype)(x * cast(FLOAT)(n)), FLOAT, dtype))
    assert casts(widened) == sorted((FLOAT, dtype))


def test_another_narrow_dtype_rounds() -> None:
    """Large numbers of bfloat16 are infinities of float16, which has more digits."""
    to, back = "float16", "bfloat16"
    n = numbers(back, scale=1e5)
    found = run(widen_values(func_of(cast(to, FLOAT), back)), n)
    assert 0 < np.isinf(found).sum() < found.size
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, n.astype(FLOAT).astype(to).astype(FLOAT))
    m = numbers(to)
    wanted = m.astype(FLOAT).astype(narrow(back)).astype(FLOAT)
    assert (wanted != m.astype(FLOAT)).any()
    np.testing.assert_array_equal(run(widen_values(func_of(cast(back, FLOAT), to)), m), wanted)


@pytest.mark.parametrize("dtype", NARROW)
def test_integers_are_rounded(dtype: str) -> None:
    """Those of more digits than the dtype has."""
    i = np.random.default_rng(0).integers(-30000, 30000, (ROWS, COLS)).astype("int32")
    n = numbers(dtype, 1)
    wanted = i.astype(FLOAT).astype(narrow(dtype)).astype(FLOAT) + n.astype(FLOAT)
    widened = widen_values(func_of(lambda i, n: cast(dtype, FLOAT)(i) + cast(FLOAT)(n), "int32", dtype))
    np.testing.assert_array_equal(run(widened, i, n), wanted)


def test_what_has_no_narrow_tensor_stays() -> None:
    func = func_of(cast("float16", FLOAT), FLOAT)
    assert widen_values(func).same_as(func)
