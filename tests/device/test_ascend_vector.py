# SPDX-License-Identifier: Apache-2.0
"""What vector functions compute on the model of the 910B, in all forms, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import ascend_texts as texts

ALL = texts.ALL
C = {"float32": "float", "float16": "half", "int32": "int32_t", "int16": "int16_t", "uint16": "uint16_t"}


def computed(body: str, x: np.ndarray, y: np.ndarray, *, dtype: str = "", out: int = 0) -> np.ndarray:
    """Run: x is loaded to `a`, y to `b`, `body` computes `c`, which is stored whole."""
    t = dtype or C[x.dtype.name]
    n = x.size
    z = np.zeros(out or n, x.dtype)
    source = texts.text(
        f"""  LocalTensor<{t}> a = ub.GetWithOffset<{t}>({n}, 0);
  LocalTensor<{t}> b = ub.GetWithOffset<{t}>({n}, 16384);
  LocalTensor<{t}> c = ub.GetWithOffset<{t}>({z.size}, 32768);
  DataCopy(a, gx, {n});
  DataCopy(b, gy, {n});
  {ALL}
{body}
  {ALL}
  DataCopy(gz, c, {z.size});""",
        dtype=t,
    )
    texts.run(source, [x, y, z]).check()
    return z


def numbers(dtype: str, n: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return rng.uniform(0.5, 4, n).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, endpoint=True).astype(dtype)


BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int16"])
def test_binary_functions(dtype: str) -> None:
    """All of them at once, by one kernel each of whose results stands in a quarter of the output."""
    x, y = numbers(dtype, 256), numbers(dtype, 256, 4)
    for name, f in BINARY.items():
        got = computed(f"  {name}(c, a, b, 256);", x, y)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(got, f(x, y), err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_unary_and_scalar_functions(dtype: str) -> None:
    x = numbers(dtype, 128)
    t = C[dtype]
    wide = x.astype(np.float64)
    cases = {
        "Exp(c, a, 128);": np.exp(wide),
        "Ln(c, a, 128);": np.log(wide),
        "Sqrt(c, a, 128);": np.sqrt(wide),
        "Rsqrt(c, a, 128);": 1 / np.sqrt(wide),
        "Reciprocal(c, a, 128);": 1 / wide,
        f"Adds(c, a, ({t})-2.0f, 128);": wide - 2,
        f"Muls(c, a, ({t})-3.0f, 128);": wide * -3,
        f"Maxs(c, a, ({t})1.5f, 128);": np.maximum(wide, 1.5),
        f"Mins(c, a, ({t})1.5f, 128);": np.minimum(wide, 1.5),
        f"Adds(c, a, ({t})-2.0f, 128); {ALL} Abs(c, c, 128);": np.abs(wide - 2),
        f"Adds(c, a, ({t})-2.0f, 128); {ALL} Relu(c, c, 128);": np.maximum(wide - 2, 0),
        f"Adds(c, a, ({t})-2.0f, 128); {ALL} LeakyRelu(c, c, ({t})0.5f, 128);": np.where(
            wide >= 2, wide - 2, (wide - 2) / 2
        ),
        "Div(c, a, b, 128);": np.ones(128),
    }
    # The result rounded once or twice: two units of the last place.
    tolerance = 3e-7 if dtype == "float32" else 2e-3
    for body, expected in cases.items():
        np.testing.assert_allclose(
            computed("  " + body, x, x), expected, rtol=tolerance, atol=tolerance, err_msg=body
        )


def test_words() -> None:
    x, y = numbers("uint16", 256), numbers("uint16", 256, 4)
    for body, expected in {
        "And(c, a, b, 256);": x & y,
        "Or(c, a, b, 256);": x | y,
        "Not(c, a, 256);": ~x,
        "ShiftLeft(c, a, (uint16_t)3, 256);": x << 3,
        "ShiftRight(c, a, (uint16_t)3, 256);": x >> 3,
        "Duplicate(c, (uint16_t)7, 256);": np.full(256, 7, np.uint16),
    }.items():
        np.testing.assert_array_equal(computed("  " + body, x, y), expected.astype(np.uint16), err_msg=body)


def test_masks_and_strides_choose_elements() -> None:
    """Four rows of 64: a mask of 20 elements, a mask of bits, one row of the second operand for all."""
    x, y = numbers("float32", 256), numbers("float32", 256, 4)
    rows = np.zeros((4, 64), np.float32)
    fill = f"  Duplicate(c, 0.0f, 256); {ALL} "
    got = computed(fill + "Add(c, a, b, 20, 4, {1, 1, 1, 8, 8, 8});", x, y).reshape(4, 64)
    rows[:, :20] = (x + y).reshape(4, 64)[:, :20]
    np.testing.assert_array_equal(got, rows)
    bits = "uint64_t m[2] = {0xF0F0, 0}; "
    got = computed(fill + bits + "Add(c, a, b, m, 4, {1, 1, 1, 8, 8, 0});", x, y).reshape(4, 64)
    lanes = np.array([0xF0F0 >> i & 1 for i in range(64)], bool)
    expected = np.where(lanes, x.reshape(4, 64) + y[:64], 0)
    np.testing.assert_array_equal(got, expected)
    # Blocks of 8 elements: only every second one of the source.
    got = computed("  Adds(c, a, 1.0f, 64, 2, {1, 2, 8, 16});", x, y, out=128).reshape(2, 64)
    np.testing.assert_array_equal(got, x.reshape(2, 8, 2, 8)[:, :, 0].reshape(2, 64) + 1)


def test_mask_register() -> None:
    x, y = numbers("float32", 256), numbers("float32", 256, 4)
    fill = f"  Duplicate(c, 0.0f, 256); {ALL} "
    got = computed(
        fill
        + "SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(100);"
        + " Add<float, false>(c, a, b, MASK_PLACEHOLDER, 1, {1, 1, 1, 8, 8, 8}); SetMaskNorm(); ResetMask();",
        x,
        y,
    )
    np.testing.assert_array_equal(got, np.where(np.arange(256) < 100, x + y, 0))


def test_accumulation_into_one_place() -> None:
    """The documented exception to overlap: repeats that add into the same target."""
    x = numbers("float32", 256)
    got = computed(
        f"  Duplicate(c, 0.0f, 64); {ALL} Add(c, a, c, 64, 4, {{1, 1, 1, 0, 8, 0}});", x, x, out=64
    )
    expected = np.zeros(64, np.float32)
    for row in x.reshape(4, 64):
        expected = row + expected
    np.testing.assert_array_equal(got, expected)


def test_products_into_a_sum() -> None:
    x, y = numbers("float32", 64), numbers("float32", 64, 4)
    got = computed(f"  Duplicate(c, 1.0f, 64); {ALL} MulAddDst(c, a, b, 64);", x, y)
    np.testing.assert_array_equal(got, np.float32(1) + x * y)
    got = computed(f"  Duplicate(c, 1.0f, 64); {ALL} Axpy(c, a, 2.0f, 64);", x, y)
    np.testing.assert_array_equal(got, np.float32(1) + x * np.float32(2))


MODES = {
    "RINT": np.rint,
    "FLOOR": np.floor,
    "CEIL": np.ceil,
    "TRUNC": np.trunc,
    "ROUND": lambda v: np.sign(v) * np.floor(np.abs(v) + 0.5),
}


@pytest.mark.parametrize("mode", MODES)
def test_casts_to_integers(mode: str) -> None:
    x = np.array(
        [-2.5, -1.5, -0.5, -0.4, 0.5, 1.5, 2.5, 2.6, 3e9, -3e9, np.nan, 7, 0, -0.0, 1e-9, 99], np.float32
    )
    z = np.zeros(16, np.int32)
    source = texts.text(f"""  LocalTensor<float> a = ub.GetWithOffset<float>(16, 0);
  LocalTensor<int32_t> c = ub.GetWithOffset<int32_t>(16, 1024);
  GlobalTensor<int32_t> out;
  out.SetGlobalBuffer((__gm__ int32_t*)z);
  DataCopy(a, gx, 16);
  {ALL}
  Cast(c, a, RoundMode::CAST_{mode}, 16);
  {ALL}
  DataCopy(out, c, 16);""")
    texts.run(source, [x, x, z]).check()
    expected = np.nan_to_num(np.clip(MODES[mode](x.astype(np.float64)), -(2**31), 2**31 - 1)).astype(np.int64)
    np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize("mode", ["RINT", "FLOOR", "CEIL", "TRUNC", "ROUND", "ODD"])
def test_casts_to_half(mode: str) -> None:
    """Against the two neighbours of each number: which of them the mode takes."""
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(0, 10, 250), [1 + 2**-11, -1 - 2**-11, 65519, 65520, 1e-8, 0]]).astype(
        np.float32
    )
    z = np.zeros(256, np.float16)
    source = texts.text(f"""  LocalTensor<float> a = ub.GetWithOffset<float>(256, 0);
  LocalTensor<half> c = ub.GetWithOffset<half>(256, 2048);
  GlobalTensor<half> out;
  out.SetGlobalBuffer((__gm__ half*)z);
  DataCopy(a, gx, 256);
  {ALL}
  Cast(c, a, RoundMode::CAST_{mode}, 256);
  {ALL}
  DataCopy(out, c, 256);""")
    texts.run(source, [x, x, z]).check()
    with np.errstate(over="ignore"):
        near = x.astype(np.float16)
        below = np.where(near.astype(np.float64) <= x, near, np.nextafter(near, np.float16(-np.inf)))
        above = np.where(near.astype(np.float64) >= x, near, np.nextafter(near, np.float16(np.inf)))
    toward_zero = np.where(x >= 0, below, above)
    away = np.where(x >= 0, above, below)
    step = np.abs(away.astype(np.float64) - toward_zero)
    step = np.where(np.isinf(step), 32.0, step)
    far = np.abs(x - toward_zero.astype(np.float64)) * 2 >= step
    exact = toward_zero == away
    expected = {
        "RINT": near,
        "FLOOR": below,
        "CEIL": above,
        "TRUNC": toward_zero,
        "ROUND": np.where(far & ~exact, away, toward_zero),
        "ODD": np.where((toward_zero.view(np.uint16) & 1) | exact, toward_zero, away),
    }[mode]
    np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize("mode", ["RINT", "FLOOR", "CEIL", "TRUNC", "ROUND"])
def test_casts_of_wide_integers(mode: str) -> None:
    """Integers that double cannot hold, and halfway cases between two floats."""
    x = np.array([2**60 + 1, -(2**60) - 1, 2**24 + 1, -(2**24) - 1, 2**25 + 3, 2**63 - 1, 5, -(2**63)] * 4)
    z = np.zeros(32, np.float32)
    source = texts.text(
        f"""  LocalTensor<int64_t> a = ub.GetWithOffset<int64_t>(32, 0);
  LocalTensor<float> c = ub.GetWithOffset<float>(32, 1024);
  GlobalTensor<float> out;
  out.SetGlobalBuffer((__gm__ float*)z);
  DataCopy(a, gx, 32);
  {ALL}
  Cast(c, a, RoundMode::CAST_{mode}, 32);
  {ALL}
  DataCopy(out, c, 32);""",
        dtype="int64_t",
    )
    texts.run(source, [x, x.copy(), z]).check()
    for value, got in zip(x.tolist()[:5] + x.tolist()[6:8], [*z[:5], *z[6:8]], strict=True):
        candidates = [int(np.nextafter(got, np.float32(s))) for s in (-np.inf, np.inf)]
        below = max((c for c in [*candidates, int(got)] if c <= value), default=int(got))
        above = min((c for c in [*candidates, int(got)] if c >= value), default=int(got))
        away = above if value > 0 else below
        nearest = below if value - below < above - value else above
        if value - below == above - value:
            nearest = away if mode == "ROUND" else int(np.float32(value))
        expected = {"FLOOR": below, "CEIL": above, "TRUNC": below if value > 0 else above}.get(mode, nearest)
        assert int(got) == expected, value


def test_casts_between_other_types() -> None:
    """Chains that end where they began: int32 over int64, bfloat16 over float."""
    x = numbers("int32", 64)
    z = np.zeros(64, np.int32)
    source = texts.text(
        f"""  LocalTensor<int32_t> a = ub.GetWithOffset<int32_t>(64, 0);
  LocalTensor<int64_t> b = ub.GetWithOffset<int64_t>(64, 1024);
  LocalTensor<int32_t> c = ub.GetWithOffset<int32_t>(64, 2048);
  DataCopy(a, gx, 64);
  {ALL}
  Cast(b, a, RoundMode::CAST_NONE, 64);
  {ALL}
  Cast(c, b, RoundMode::CAST_NONE, 64);
  {ALL}
  DataCopy(gz, c, 64);""",
        dtype="int32_t",
    )
    texts.run(source, [x, x, z]).check()
    np.testing.assert_array_equal(z, x)
    bits = numbers("uint16", 64) & 0xBFFF  # no infinities and NaNs
    back = np.zeros(64, np.uint16)
    source = texts.text(
        f"""  LocalTensor<bfloat16_t> a = ub.GetWithOffset<bfloat16_t>(64, 0);
  LocalTensor<float> b = ub.GetWithOffset<float>(64, 1024);
  LocalTensor<bfloat16_t> c = ub.GetWithOffset<bfloat16_t>(64, 2048);
  DataCopy(a, gx, 64);
  {ALL}
  Cast(b, a, RoundMode::CAST_NONE, 64);
  {ALL}
  Cast(c, b, RoundMode::CAST_RINT, 64);
  {ALL}
  DataCopy(gz, c, 64);""",
        dtype="bfloat16_t",
    )
    texts.run(source, [bits, bits, back]).check()
    np.testing.assert_array_equal(back, bits)


@pytest.mark.parametrize("mode", ["LT", "GT", "EQ", "LE", "GE", "NE"])
def test_comparisons_and_selections(mode: str) -> None:
    x, y = numbers("float32", 256), numbers("float32", 256, 4)
    y[::3] = x[::3]
    compare = {"LT": x < y, "GT": x > y, "EQ": x == y, "LE": x <= y, "GE": x >= y, "NE": x != y}[mode]
    mask = "  LocalTensor<uint8_t> m = ub.GetWithOffset<uint8_t>(32, 49152);\n"
    got = computed(
        f"{mask}  Compare(m, a, b, CMPMODE::{mode}, 256); {ALL}"
        " Select(c, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 256);",
        x,
        y,
    )
    np.testing.assert_array_equal(got, np.where(compare, x, y))
    got = computed(
        f"{mask}  CompareScalar(m, a, 2.0f, CMPMODE::{mode}, 256); {ALL}"
        " Select(c, m, a, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 200);"
        f" {ALL} Duplicate(c[200], 0.0f, 56);",
        x,
        y,
    )
    scalar = {"LT": x < 2, "GT": x > 2, "EQ": x == 2, "LE": x <= 2, "GE": x >= 2, "NE": x != 2}[mode]
    np.testing.assert_array_equal(got[:200], np.where(scalar, x, -1)[:200])
