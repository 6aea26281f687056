# SPDX-License-Identifier: Apache-2.0
"""The named scalar functions against Python's own arithmetic, at the places where they differ by language."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.igraph.iops_scalar import BINARY, COMPARE, REDUCE, UNARY, evaluate, reduce_array

X = np.array([-3.5, -2.0, -0.5, -0.0, 0.25, 1.0, 2.5, 40.0])
INTS = np.array([-7, -2, -1, 0, 1, 2, 7])

#: Python's meaning of every unary function of one float.
PYTHON = {
    "copy": lambda x: x,
    "adds": lambda x: x + 1.5,
    "subs": lambda x: x - 1.5,
    "muls": lambda x: x * 1.5,
    "divs": lambda x: x / 1.5,
    "maxs": lambda x: max(x, 1.5),
    "mins": lambda x: min(x, 1.5),
    "pows": lambda x: x**1.5,
    "rsubs": lambda x: 1.5 - x,
    "rdivs": lambda x: 1.5 / x,
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "recip": lambda x: 1 / x,
    "abs": abs,
    "neg": lambda x: -x,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": math.acosh,
    "atanh": math.atanh,
    "erf": math.erf,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "relu": lambda x: max(x, 0.0),
    "leaky_relu": lambda x: x if x >= 0 else 1.5 * x,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "trunc": math.trunc,
    "sign": lambda x: (x > 0) - (x < 0),
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
}


def test_every_float_function_is_compared() -> None:
    assert set(PYTHON) == {name for name, row in UNARY.items() if "float" in row.kinds}


@pytest.mark.parametrize("name", PYTHON)
def test_unary_agrees_with_python(name: str) -> None:
    got = evaluate(UNARY[name], "fp64", [X], [1.5] * UNARY[name].n_params)
    for x, y in zip(X.tolist(), got.tolist(), strict=True):
        try:
            wanted = PYTHON[name](x)
        except (ValueError, ZeroDivisionError):
            assert not math.isfinite(y), f"{name}({x}) is undefined, got {y}"
            continue
        if isinstance(wanted, complex):
            assert math.isnan(y)
        else:
            # two libraries' functions, each good to about an ULP of fp64
            assert y == pytest.approx(wanted, rel=1e-14, abs=1e-300), f"{name}({x})"


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16", "fp8e4m3", "fp8e5m2"])
@pytest.mark.parametrize("name", ["exp", "sin", "muls", "recip", "sqrt"])
def test_narrow_floats_are_correctly_rounded(name: str, dtype: str) -> None:
    x = np.linspace(0.3, 3, 60).astype(numpy_of(dtype))
    params = [0.7] * UNARY[name].n_params
    got = evaluate(UNARY[name], dtype, [x], params)
    rounded = [float(np.asarray(p).astype(numpy_of(dtype))) for p in params]
    exact = evaluate(UNARY[name], "fp64", [x.astype(np.float64)], rounded)
    assert got.dtype == numpy_of(dtype)
    np.testing.assert_array_equal(got, exact.astype(numpy_of(dtype)))


def test_erf_and_sigmoid_at_the_ends() -> None:
    x = np.array([-np.inf, -800.0, 0.0, 800.0, np.inf, np.nan])
    np.testing.assert_array_equal(evaluate(UNARY["sigmoid"], "fp64", [x]), [0, 0, 0.5, 1, 1, np.nan])
    np.testing.assert_array_equal(evaluate(UNARY["erf"], "fp64", [x]), [-1, -1, 0, 1, 1, np.nan])
    wide = np.linspace(-6, 6, 1001)
    np.testing.assert_allclose(evaluate(UNARY["erf"], "fp64", [wide]), special.erf(wide), rtol=1e-15, atol=0)


def test_quotients_round_as_named() -> None:
    a, b = (m.reshape(-1).astype(np.int32) for m in np.meshgrid(INTS, INTS[INTS != 0]))
    for x, y, floor, mod, trunc, rem in zip(
        a,
        b,
        *(evaluate(BINARY[n], "int32", [a, b]) for n in ("floordiv", "mod", "truncdiv", "truncmod")),
        strict=True,
    ):
        assert (floor, mod) == divmod(int(x), int(y))
        assert trunc == int(int(x) / int(y))
        assert rem == math.fmod(x, y)


def test_float_quotients_round_as_named() -> None:
    a, b = np.float32([7.5, -7.5, 7.5, -7.5]), np.float32([2, 2, -2, -2])
    for name, wanted in {
        "floordiv": [3, -4, -4, 3],
        "mod": [1.5, 0.5, -0.5, -1.5],
        "truncdiv": [3, -3, -3, 3],
        "truncmod": [1.5, -1.5, 1.5, -1.5],
    }.items():
        np.testing.assert_array_equal(evaluate(BINARY[name], "fp32", [a, b]), wanted)


def test_integers_wrap_and_powers_of_integers_are_exact() -> None:
    x = np.array([127, -128], np.int8)
    assert evaluate(BINARY["add"], "int8", [x, x]).tolist() == [-2, 0]
    base = INTS.astype(np.int64)
    assert evaluate(UNARY["pows"], "int64", [base], [5]).tolist() == [int(i) ** 5 for i in INTS]
    assert evaluate(UNARY["pows"], "int64", [base], [-1]).tolist() == [0, 0, -1, 0, 1, 0, 0]


def test_shifts_by_the_width_or_more_shift_everything_out() -> None:
    x = np.array([-7, 7], np.int8)
    assert evaluate(UNARY["shls"], "int8", [x], [8]).tolist() == [0, 0]
    assert evaluate(UNARY["shrs"], "int8", [x], [8]).tolist() == [-1, 0]
    assert evaluate(UNARY["shrs"], "uint8", [x.view(np.uint8)], [9]).tolist() == [0, 0]


def test_bits_and_comparisons() -> None:
    a, b = np.array([0b1100, 5], np.uint8), np.array([0b1010, 1], np.uint8)
    assert evaluate(BINARY["and"], "uint8", [a, b]).tolist() == [0b1000, 1]
    assert evaluate(BINARY["xor"], "uint8", [a, b]).tolist() == [0b0110, 4]
    assert evaluate(BINARY["shl"], "uint8", [a, b[1:].repeat(2)]).tolist() == [0b11000, 10]
    assert evaluate(UNARY["ands"], "uint8", [a], [6]).tolist() == [0b0100, 4]
    assert evaluate(UNARY["shls"], "uint8", [a], [5]).tolist() == [0b10000000, 0b10100000]
    assert evaluate(UNARY["shrs"], "uint8", [a], [2]).tolist() == [0b11, 1]
    assert evaluate(UNARY["not"], "bool", [np.array([True, False])]).tolist() == [False, True]
    nan = np.float32([np.nan, 1])
    for name, wanted in {"eq": 1, "ne": 0, "lt": 0, "le": 1, "gt": 0, "ge": 1}.items():
        got = evaluate(COMPARE[name], "fp32", [nan, nan])
        assert got.dtype == np.bool_ and got.tolist() == [name == "ne", bool(wanted)]


@pytest.mark.parametrize("dtype", [n for n, d in DTYPES.items() if d.kind != "bool"])
@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
def test_the_identity_changes_nothing(name: str, dtype: str) -> None:
    x = np.array([[1], [0], [3]]).astype(numpy_of(dtype))
    empty = reduce_array(REDUCE[name], dtype, x[:, :0], 1)
    assert empty.shape == (3, 1) and empty.dtype == numpy_of(dtype)
    np.testing.assert_array_equal(reduce_array(REDUCE[name], dtype, np.hstack([x, empty]), 1), x)


def test_fp16_sums_accumulate_in_fp32() -> None:
    x = np.full((1, 4096), 1.0, np.float16)
    # a sum held in fp16 would stop at 2048, where 1 is half an ULP
    assert reduce_array(REDUCE["add"], "fp16", x, 1).item() == 4096
