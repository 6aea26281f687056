# SPDX-License-Identifier: Apache-2.0
"""What the functions of the modelled MLU compute, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.device import bang_texts as texts

N = 200  # no multiple of 128 bytes


def apply(calls: str, x: np.ndarray, y: np.ndarray, dtype: str = "float", size: int = 0) -> np.ndarray:
    """Load x to `a` and y to `b`, make the calls, store `c`, which has as many bytes as x (or `size`)."""
    z = np.zeros(size or x.size, x.dtype)
    source = texts.text(
        f"""  __memcpy(a, x, {x.nbytes}, GDRAM2NRAM);
  __memcpy(b, y, {y.nbytes}, GDRAM2NRAM);
  {calls}
  __memcpy(z, c, {z.nbytes}, NRAM2GDRAM);""",
        dtype=dtype,
    )
    texts.run(source, [x, y, z], on=texts.device(arch=592)).check()
    return z


def numbers(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x, y = generator.standard_normal((2, N)).astype(np.float32)
    y[::7] = x[::7]  # some are equal
    return x, y


BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maxequal": np.fmax,
    "minequal": np.fmin,
    "nan_maximum": np.maximum,
    "nan_minimum": np.minimum,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


@pytest.mark.parametrize("dtype", ["float", "half"])
def test_binary_functions(dtype: str) -> None:
    """One text of all; halves are computed in float and rounded once, as numpy does."""
    x, y = (v.astype(np.float32 if dtype == "float" else np.float16) for v in numbers())
    calls = "\n".join(f"  __bang_{name}(c + {i} * {N}, a, b, {N});" for i, name in enumerate(BINARY))
    z = apply(calls, x, y, dtype, size=N * len(BINARY)).reshape(-1, N)
    for row, (name, function) in zip(z, BINARY.items(), strict=True):
        np.testing.assert_array_equal(row, function(x, y).astype(x.dtype), err_msg=name)


def test_scalars_and_repeated_vectors() -> None:
    x, y = numbers()
    z = apply(
        f"""__bang_add_scalar(c, a, 1.5f, {N});
  __bang_mul_scalar(c + {N}, a, -3.0f, {N});
  __bang_lt_scalar(c + 2 * {N}, a, 0.25f, {N});
  __bang_maxeq_scalar(c + 3 * {N}, a, 0.0f, {N});
  __bang_cycle_add(c + 4 * {N}, a, b, {N}, 40);
  __bang_cycle_lt(c + 5 * {N}, a, b, {N}, 20);""",
        x,
        y,
        size=6 * N,
    ).reshape(-1, N)
    repeated = np.tile(y[:40], N // 40)
    expected = [
        x + np.float32(1.5),
        x * np.float32(-3),
        x < 0.25,
        np.fmax(x, 0),
        x + repeated,
        x < np.tile(y[:20], 10),
    ]
    np.testing.assert_array_equal(z, np.stack([e.astype(np.float32) for e in expected]))


def test_nan_is_kept_where_the_header_says_so() -> None:
    x, y = numbers()
    x[3] = y[5] = np.nan
    z = apply(f"__bang_nan_maximum(c, a, b, {N}); __bang_maxequal(c + {N}, a, b, {N});", x, y, size=2 * N)
    kept, passed = z.reshape(2, N)
    assert np.isnan(kept[[3, 5]]).all()
    np.testing.assert_array_equal(passed, np.fmax(x, y))


def test_fused_functions_round_once() -> None:
    x, y = numbers()
    ops = ("FMA", "FMS", "FAM", "FSM", "FAA", "FAS", "FSS", "FSA")
    calls = "\n".join(
        f"  __bang_fusion(FUSION_{op}, c + {i} * {N}, a, b, b, {N}, {N});" for i, op in enumerate(ops)
    )
    calls += f"\n  __bang_fusion(FUSION_FMA, c + 8 * {N}, a, 2.0f, 1.0f, {N});"
    z = apply(calls, x, y, size=9 * N).reshape(-1, N)
    s, t = x.astype(np.float64), y.astype(np.float64)
    expected = [
        s * t + t,
        s * t - t,
        (s + t) * t,
        (s - t) * t,
        s + t + t,
        s + t - t,
        s - t - t,
        s - t + t,
        s * 2 + 1,
    ]
    np.testing.assert_array_equal(z, np.stack(expected).astype(np.float32))


def test_functions_of_one_operand() -> None:
    x, y = numbers()
    positive = np.abs(x) + np.float32(0.1)
    names = {
        "sqrt": np.sqrt,
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "recip": np.reciprocal,
        "pow2": np.exp2,
        "log2": np.log2,
        "sin": np.sin,
        "cos": np.cos,
        "floor": np.floor,
        "square": np.square,
        "abs": np.abs,
    }
    calls = "\n".join(f"  __bang_{name}(c + {i} * {N}, a, {N});" for i, name in enumerate(names))
    z = apply(calls, positive, y, size=N * len(names)).reshape(-1, N)
    for row, (name, function) in zip(z, names.items(), strict=True):
        # Computed in double and rounded once; the two libraries may differ in the last bit of a double.
        expected = function(positive.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_max_ulp(row, expected, maxulp=1)
        assert name


def test_bits_and_logic_of_integers() -> None:
    generator = np.random.default_rng(1)
    x, y = generator.integers(-(2**31), 2**31 - 1, (2, N)).astype(np.int32)
    z = apply(
        f"""__bang_band(c, a, b, {N});
  __bang_bor(c + {N}, a, b, {N});
  __bang_bxor(c + 2 * {N}, a, b, {N});
  __bang_bnot(c + 3 * {N}, a, {N});
  __bang_band_scalar(c + 4 * {N}, a, 255, {N});
  __bang_and((char *)(c + 5 * {N}), (char *)a, (char *)b, 4 * {N});""",
        x,
        y,
        "int",
        6 * N,
    ).reshape(-1, N)
    truth = ((x.view(np.int8) != 0) & (y.view(np.int8) != 0)).astype(np.int8).view(np.int32)
    np.testing.assert_array_equal(z, np.stack([x & y, x | y, x ^ y, ~x, x & 255, truth]))


@pytest.mark.parametrize(
    ("mode", "whole"),
    [
        ("rn", np.rint),
        ("rd", lambda v: np.trunc(v + np.copysign(0.5, v))),
        ("tz", np.trunc),
        ("dn", np.floor),
        ("up", np.ceil),
        ("oz", lambda v: np.copysign(np.ceil(np.abs(v)), v)),
    ],
)
def test_conversions_to_integers(mode: str, whole: Callable[[np.ndarray], np.ndarray]) -> None:
    x = np.arange(-N // 2, N // 2).astype(np.float32) * np.float32(0.25)
    z = apply(f"__bang_float2int32_{mode}((int *)c, a, {N}, 0);", x, x)
    np.testing.assert_array_equal(z.view(np.int32), whole(x.astype(np.float64)).astype(np.int32))


def test_conversions_between_floating_point_types() -> None:
    x, _ = numbers()
    z = apply(
        f"__bang_float2half_rn((half *)b, a, {N}); __bang_half2float(c, (half *)b, {N});"
        f" __bang_float2bfloat16_rn((bfloat16_t *)b, a, {N});"
        f" __bang_bfloat162float(c + {N}, (bfloat16_t *)b, {N});"
        f" __bang_float2half_tz((half *)b, a, {N}); __bang_half2float(c + 2 * {N}, (half *)b, {N});",
        x,
        x,
        size=3 * N,
    ).reshape(3, N)
    np.testing.assert_array_equal(z[0], x.astype(np.float16).astype(np.float32))
    bits = x.view(np.uint32)
    nearest = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    np.testing.assert_array_equal(z[1], nearest)
    assert (np.abs(z[2]) <= np.abs(x)).all() and (np.abs(z[2] - x) <= np.abs(x) * 2.0**-10).all()


def test_integers_to_float_with_a_position() -> None:
    x = np.arange(-N // 2, N // 2).astype(np.int32)
    z = apply(f"__bang_int322float_rn((float *)c, a, {N}, -2);", x, x, "int")
    np.testing.assert_array_equal(z.view(np.float32), x.astype(np.float32) / 4)


def test_transpose_and_fills() -> None:
    x, y = numbers()
    z = apply(f"__bang_write_value(c + {N}, {N}, 2.5f); __bang_transpose(c, a, 8, 25);", x, y, size=2 * N)
    np.testing.assert_array_equal(z[:N].reshape(25, 8), x.reshape(8, 25).T)
    np.testing.assert_array_equal(z[N:], np.float32(2.5))
    strided = apply(f"__bang_write_zero(c, {N}); __bang_write_value(c, 2, 1.0f, 16, 2, 160, 1);", x, y)
    expected = np.zeros(N, np.float32)
    for block in range(2):
        for i in range(3):
            expected[block * 40 + i * 4 : block * 40 + i * 4 + 2] = 1
    np.testing.assert_array_equal(strided, expected)


def test_pools_and_sums() -> None:
    x = np.random.default_rng(2).standard_normal((6, 4, 32)).astype(np.float32).ravel()
    z = apply(
        """__bang_sumpool(c, a, 32, 6, 4, 3, 2, 2, 3);
  __bang_maxpool(c + 128, a, 32, 6, 4, 3, 2, 2, 3);
  __bang_minpool(c + 256, a, 32, 6, 4, 3, 2, 2, 3);
  __bang_write_zero(c + 384, 768);
  __bang_reduce_sum(c + 384, a, 768);""",
        x,
        x,
        size=384 + 768,
    )
    windows = x.reshape(2, 3, 2, 2, 32).transpose(0, 2, 1, 3, 4).reshape(2, 2, 6, 32).astype(np.float64)
    np.testing.assert_array_equal(z[:128].reshape(2, 2, 32), windows.sum(2).astype(np.float32))
    np.testing.assert_array_equal(z[128:256].reshape(2, 2, 32), windows.max(2).astype(np.float32))
    np.testing.assert_array_equal(z[256:384].reshape(2, 2, 32), windows.min(2).astype(np.float32))
    groups = z[384:].reshape(24, 32)
    # The order of addition is not known: in double here as there, up to its rounding.
    np.testing.assert_allclose(groups[:, 0], x.reshape(24, 32).astype(np.float64).sum(1), rtol=1e-6)
    assert (groups[:, 1:] == 0).all()


def test_places_of_largest_values_and_sums_as_scalars() -> None:
    x, y = numbers()
    z = apply(
        f"""__bang_write_zero(c, {N});
  __bang_argmax(b, a, {N});
  c[0] = b[0];
  c[1] = (float)((unsigned int *)b)[1];
  c[2] = __bang_sum(a, {N});""",
        x,
        y,
    )
    assert (z[0], z[1]) == (x.max(), x.argmax())
    np.testing.assert_allclose(z[2], x.astype(np.float64).sum(), rtol=1e-6)


def test_masks() -> None:
    x, y = numbers()
    count = int((y > 0).sum())
    z = apply(
        f"""__bang_write_zero(c, 3 * {N});
  __bang_gt_scalar(b, b, 0.0f, {N});
  unsigned int n = __bang_filter(c, a, b, {N});
  __bang_write_zero(c + n, {N} - n);
  __bang_write_value(c + {N}, {N}, -1.0f);
  __bang_write_zero(c + 4 * {N}, {N});
  __bang_gt_bitindex(c + 3 * {N}, b, c + 4 * {N}, {N});
  __bang_maskmove_bitindex(c + {N}, a, c + 3 * {N}, {N});
  __bang_count((unsigned int *)(c + 2 * {N}), b, {N});""",
        x,
        y,
        size=3 * N,
    )
    np.testing.assert_array_equal(z[:count], x[y > 0])
    np.testing.assert_array_equal(z[N : 2 * N], np.where(y > 0, x, -1))
    assert z.view(np.uint32)[2 * N] == count


@pytest.mark.parametrize(("m", "k", "n"), [(3, 32, 64), (2, 16, 128)])
def test_products(m: int, k: int, n: int) -> None:
    """The right operand comes from [N][K], laid out for the parts of WRAM."""
    generator = np.random.default_rng(3)
    x, y = generator.standard_normal((m, k)), generator.standard_normal((n, k))
    x, y = x.astype(np.float32), y.astype(np.float32)
    z = apply(
        f"""__bang_reshape_filter(c, b, {n}, 1, 1, {k});
  __sync_compute();
  __memcpy_async(w, c, {n * k * 4}, NRAM2WRAM);
  __sync_move();
  __bang_matmul(c, a, w, {m}, {k}, {n});""",
        x.ravel(),
        y.ravel(),
        size=m * n,
    )
    # Sums are kept in double and rounded once.
    np.testing.assert_allclose(z.reshape(m, n), x.astype(np.float64) @ y.T.astype(np.float64), rtol=1e-6)


def test_approximate_functions_are_not_exact() -> None:
    """The stated error and the stated limits: who takes these functions for exact is found by the results."""
    x = np.linspace(-9, 9, N).astype(np.float32)
    z = apply(
        f"__bang_active_sigmoid(c, a, {N}); __bang_active_exphp(c + {N}, a, {N});", x, x, size=2 * N
    ).reshape(2, N)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    inside = np.abs(x) <= 7.75
    error = np.abs(z[0] / exact - 1)[inside]
    assert 1e-3 < error.max() <= 0.01
    assert (z[0][x > 7.75] == 1).all() and (z[0][x < -7.75] == 0).all()
    error = np.abs(z[1] / np.exp(x.astype(np.float64)) - 1)
    assert 1e-4 < error.max() <= 0.003
    beyond = apply(f"__bang_active_exphp(c, a, {N});", x * 3, x)
    assert np.isnan(beyond[x * 3 > 16]).all()


def test_integers_become_floats_towards_zero_by_the_earlier_name() -> None:
    """`__bang_int2float` of the header of BANG 3; the later `_rn` rounds to the nearest."""
    x = np.array([2**24 + 1, 2**24 + 3, -(2**24) - 3, 2**31 - 1, -(2**31), 7, 0, -1], np.int32)
    z = np.zeros(2 * x.size, np.float32)
    source = texts.text(
        f"""  __memcpy(a, x, {x.nbytes}, GDRAM2NRAM);
  __bang_int2float(c, (int *)a, {x.size}, 0);
  __bang_int322float_rn(c + {x.size}, (int *)a, {x.size}, 0);
  __memcpy(z, c, {z.nbytes}, NRAM2GDRAM);"""
    )
    texts.run(source, [x.view(np.float32), np.ones(8, np.float32), z]).check()
    nearest = x.astype(np.float32)
    above = np.abs(nearest.astype(np.float64)) > np.abs(x.astype(np.float64))
    down = np.where(above, np.nextafter(nearest, np.float32(0)), nearest)
    assert above.sum() == 3
    np.testing.assert_array_equal(z.reshape(2, -1), [down, nearest])
