# SPDX-License-Identifier: Apache-2.0
"""Narrow floats, conversions and tensor cores of the host model against NumPy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest
from uir_tvm.device import launch
from uir_tvm.target.cuda import host_model as simt

HEADERS = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n"
NARROW = {
    "__half": np.float16,
    "__nv_bfloat16": ml_dtypes.bfloat16,
    "__nv_fp8_e4m3": ml_dtypes.float8_e4m3fn,
    "__nv_fp8_e5m2": ml_dtypes.float8_e5m2,
}


def run(
    body: str, *arrays: np.ndarray, params: str, threads: int = 32, shared_bytes: int = 0
) -> launch.LaunchResult:
    text = (
        HEADERS + f'extern "C" __global__ void k({params}, int n) {{\n  const int thread = threadIdx.x, '
        f"step = blockDim.x;\n{body}\n}}\n"
    )
    result = simt.launch(
        simt.compile(text), "k", [*arrays, len(arrays[0])], grid=1, block=threads, shared_bytes=shared_bytes
    )
    return result.check()


def hard_floats(count: int, limit: float) -> np.ndarray:
    """Random bit patterns, values near a format's limit, halves between its numbers, special values."""
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.standard_normal(count) * limit).astype(np.float32)
    small = (rng.standard_normal(count) * 1e-6).astype(np.float32)
    ties = (rng.integers(-4096, 4096, count) * 2.0**-13).astype(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, limit, -limit, 2 * limit], np.float32)
    return np.concatenate([bits, near, small, ties, special])


@pytest.mark.parametrize("name", NARROW)
def test_every_narrow_number_widens_exactly(name: str) -> None:
    dtype = NARROW[name]
    size = np.dtype(dtype).itemsize
    bits = np.arange(2 ** (8 * size)).astype(f"u{size}")
    # But for the NaNs with which registers begin: those must not reach memory.
    if size == 2:
        bits = bits[~np.isin(bits & 0x7FFF, [0x7E28, 0x7E2D, 0x7FC5])]
    out = np.zeros(len(bits), np.float32)
    run(
        "  for (int i = thread; i < n; i += step) y[i] = float(x[i]);",
        bits,
        out,
        params=f"const {name}* x, float* y",
    )
    np.testing.assert_array_equal(out, bits.view(dtype).astype(np.float32))


@pytest.mark.parametrize("name", ["__half", "__nv_bfloat16"])
@pytest.mark.parametrize("source", ["float", "double"])
def test_16_bit_floats_round_to_nearest_even(name: str, source: str) -> None:
    dtype = NARROW[name]
    x = hard_floats(3000, 65504.0)
    if source == "double":
        # Between two floats as well: a conversion by way of float would round twice.
        with np.errstate(invalid="ignore"):
            x = x.astype(np.float64) * (1 + 2.0**-40)
    y = np.zeros(len(x), np.uint16)
    run(
        f"  for (int i = thread; i < n; i += step) y[i] = {name}(x[i]).__x;",
        x,
        y,
        params=f"const {source}* x, unsigned short* y",
    )
    nan = np.isnan(x)
    assert np.isnan(y.view(dtype)[nan].astype(np.float32)).all()
    if source == "float" or name == "__half":
        with np.errstate(over="ignore", invalid="ignore"):
            expected = x.astype(dtype).view(np.uint16)
    else:
        # ml_dtypes goes from double to bfloat16 by way of float; float rounded to odd makes that exact.
        with np.errstate(over="ignore", invalid="ignore"):
            toward_zero = x.astype(np.float32)
        above = np.abs(toward_zero.astype(np.float64)) > np.abs(x)
        bits = toward_zero.view(np.uint32) - above.astype(np.uint32)
        inexact = bits.view(np.float32).astype(np.float64) != x
        expected = (bits | inexact.astype(np.uint32)).view(np.float32).astype(dtype).view(np.uint16)
    np.testing.assert_array_equal(y[~nan], expected[~nan])


@pytest.mark.parametrize("name", ["__nv_fp8_e4m3", "__nv_fp8_e5m2"])
def test_fp8_rounds_and_saturates(name: str) -> None:
    dtype = NARROW[name]
    limit = float(ml_dtypes.finfo(dtype).max)
    x = hard_floats(3000, limit)
    y = np.zeros(len(x), np.uint8)
    run(
        f"  for (int i = thread; i < n; i += step) y[i] = {name}(x[i]).__x;",
        x,
        y,
        params="const float* x, unsigned char* y",
    )
    nan = np.isnan(x)
    expected = np.clip(x[~nan], -limit, limit).astype(dtype).view(np.uint8)
    np.testing.assert_array_equal(y[~nan], expected)
    assert (y[nan] == 0x7F).all()


@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("name,short", [("__half", "half"), ("__nv_bfloat16", "bfloat16")])
def test_directed_rounding(mode: str, name: str, short: str) -> None:
    x = np.random.default_rng(3).standard_normal(2000).astype(np.float32) * 3
    y = np.zeros(len(x), np.uint16)
    run(
        f"  for (int i = thread; i < n; i += step) y[i] = __float2{short}_{mode}(x[i]).__x;",
        x,
        y,
        params="const float* x, unsigned short* y",
    )
    got = y.view(NARROW[name]).astype(np.float32)
    step = np.abs(x) * 2.0 ** (-10 if name == "__half" else -7)
    assert (np.abs(got - x) <= step).all()
    if mode == "rz":
        assert (np.abs(got) <= np.abs(x)).all()
    else:
        assert ((got <= x) if mode == "rd" else (got >= x)).all()


@pytest.mark.parametrize(
    "call,dtype,rounded",
    [
        ("__float2int_rn", np.int32, np.rint),
        ("__float2int_rz", np.int32, np.trunc),
        ("__float2uint_rd", np.uint32, np.floor),
        ("__float2ll_ru", np.int64, np.ceil),
        ("__float2ull_rn", np.uint64, np.rint),
    ],
)
def test_conversions_to_integers_saturate(call: str, dtype: type, rounded) -> None:
    x = hard_floats(2000, 3e9)
    y = np.zeros(len(x), dtype)
    kind = {np.int32: "int", np.uint32: "unsigned", np.int64: "long long", np.uint64: "unsigned long long"}[
        dtype
    ]
    run(
        f"  for (int i = thread; i < n; i += step) y[i] = {call}(x[i]);",
        x,
        y,
        params=f"const float* x, {kind}* y",
    )
    info = np.iinfo(dtype)
    for value, got in zip(x, y, strict=True):
        if np.isnan(value):
            assert got == 0
        elif np.isinf(value):
            assert got == (info.max if value > 0 else info.min)
        else:
            assert got == min(max(int(rounded(float(value))), info.min), info.max), value


MMA = """
  reg<float, 4> acc;
  reg<uint32_t, 4> a;
  reg<uint32_t, 2> b;
  const int g = thread / 4, t = thread % 4, K = {k}, P = {per};
  for (int i = 0; i < 4; ++i) {{
    a[i] = *reinterpret_cast<const uint32_t*>(x + (g + i % 2 * 8) * K + i / 2 * 4 * P + t * P);
    acc[i] = c[(g + i / 2 * 8) * 8 + t * 2 + i % 2];
  }}
  for (int i = 0; i < 2; ++i) b[i] = *reinterpret_cast<const uint32_t*>(w + g * K + i * 4 * P + t * P);
  {name}(&acc[0], &acc[2], &a[0], &b[0]);
  for (int i = 0; i < 4; ++i) y[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = acc[i];
"""


@pytest.mark.parametrize(
    "name,k,dtype,element",
    [
        ("mma_m16n8k16_f16", 16, np.float16, "__half"),
        ("mma_m16n8k16_bf16", 16, ml_dtypes.bfloat16, "__nv_bfloat16"),
        ("mma_m16n8k8_tf32", 8, np.float32, "float"),
        ("mma_m16n8k32_e4m3", 32, ml_dtypes.float8_e4m3fn, "__nv_fp8_e4m3"),
        ("mma_m16n8k32_e5m2", 32, ml_dtypes.float8_e5m2, "__nv_fp8_e5m2"),
    ],
)
def test_mma(name: str, k: int, dtype: type, element: str) -> None:
    rng = np.random.default_rng(5)
    a = (rng.integers(-8, 8, (16, k)) / 4).astype(dtype)
    b = (rng.integers(-8, 8, (8, k)) / 4).astype(dtype)
    c = rng.standard_normal((16, 8)).astype(np.float32)
    y = np.zeros((16, 8), np.float32)
    per = 4 // np.dtype(dtype).itemsize
    bytes_of = [array.view(np.uint8) if array.dtype.kind == "V" else array for array in (a, b)]
    run(
        MMA.format(name=name, k=k, per=per),
        *bytes_of,
        c,
        y,
        params=f"const {element}* x, const {element}* w, const float* c, float* y",
    )
    # Sums of few multiples of 1/16 are exact; adding the accumulator rounds once.
    exact = (a.astype(np.float64) @ b.astype(np.float64).T + c).astype(np.float32)
    np.testing.assert_array_equal(y, exact)


@pytest.mark.parametrize(
    "name,dtype,element", [("s8", np.int8, "signed char"), ("u8", np.uint8, "unsigned char")]
)
def test_mma_of_integers(name: str, dtype: type, element: str) -> None:
    rng = np.random.default_rng(6)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = (rng.integers(low, high, (rows, 32), endpoint=True).astype(dtype) for rows in (16, 8))
    c = rng.integers(-1000, 1000, (16, 8)).astype(np.int32)
    y = np.zeros((16, 8), np.int32)
    body = MMA.format(name=f"mma_m16n8k32_{name}", k=32, per=4).replace("reg<float, 4>", "reg<int32_t, 4>")
    run(body, a, b, c, y, params=f"const {element}* x, const {element}* w, const int* c, int* y")
    np.testing.assert_array_equal(y, a.astype(np.int32) @ b.astype(np.int32).T + c)


def test_mma_of_doubles() -> None:
    rng = np.random.default_rng(8)
    a, b, c = rng.standard_normal((8, 4)), rng.standard_normal((8, 4)), rng.standard_normal((8, 8))
    y = np.zeros((8, 8))
    run(
        """
  double d[2] = {c[thread / 4 * 8 + thread % 4 * 2], c[thread / 4 * 8 + thread % 4 * 2 + 1]};
  mma_m8n8k4_f64(d, x[thread], w[thread]);
  for (int i = 0; i < 2; ++i) y[thread / 4 * 8 + thread % 4 * 2 + i] = d[i];
""",
        a,
        b,
        c,
        y,
        params="const double* x, const double* w, const double* c, double* y",
    )
    np.testing.assert_allclose(y, a @ b.T + c, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_ldmatrix(count: int, transposed: bool) -> None:
    matrices = np.arange(count * 64, dtype=np.uint16).reshape(count, 8, 8)
    y = np.zeros((32, count, 2), np.uint16)
    run(
        f"""
  auto s = shared_at<unsigned short, {count * 64}>(smem, 0);
  extern __shared__ unsigned char smem[];
  for (int i = thread; i < {count * 64}; i += 32) s[i] = x[i];
  __syncwarp();
  reg<uint32_t, {count}> r;
  ldmatrix_x{count}{"_trans" if transposed else ""}(&r[0], s + (thread % {8 * count}) * 8);
  for (int i = 0; i < {count}; ++i) reinterpret_cast<uint32_t*>(y)[thread * {count} + i] = r[i];
""",
        matrices.reshape(-1),
        y,
        params="const unsigned short* x, unsigned short* y",
        shared_bytes=count * 128,
    )
    for lane in range(32):
        for m in range(count):
            whole = matrices[m].T if transposed else matrices[m]
            np.testing.assert_array_equal(y[lane, m], whole[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2])


def test_shuffles_votes_and_reductions() -> None:
    y = np.zeros((8, 32), np.int32)
    run(
        """
  const unsigned all = 0xffffffffu;
  y[thread] = __shfl_sync(all, thread, 3, 8);
  y[32 + thread] = __shfl_xor_sync(all, thread, 5);
  y[64 + thread] = __shfl_up_sync(all, thread, 2);
  y[96 + thread] = __shfl_down_sync(all, thread, 3, 16);
  y[128 + thread] = int(__ballot_sync(all, thread % 3 == 0));
  y[160 + thread] = __reduce_add_sync(all, thread);
  y[192 + thread] = __all_sync(all, thread < 32) + 2 * __any_sync(all, thread == 40);
  y[224 + thread] = int(__match_any_sync(all, thread / 8));
""",
        y,
        params="int* y",
    )
    lane = np.arange(32)
    np.testing.assert_array_equal(y[0], lane // 8 * 8 + 3)
    np.testing.assert_array_equal(y[1], lane ^ 5)
    np.testing.assert_array_equal(y[2], np.where(lane < 2, lane, lane - 2))
    np.testing.assert_array_equal(y[3], np.where(lane % 16 + 3 < 16, lane + 3, lane))
    assert (y[4].view(np.uint32) == sum(1 << i for i in range(0, 32, 3))).all()
    assert (y[5] == 496).all() and (y[6] == 1).all()
    np.testing.assert_array_equal(y[7].view(np.uint32), 0xFF << (lane // 8 * 8))
