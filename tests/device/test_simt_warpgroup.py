# SPDX-License-Identifier: Apache-2.0
"""Products of four warps on the host model: where tiles lie, sums in flight, fences, missing warps."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from uir_tvm.device import launch
from uir_tvm.target.cuda import host_model as simt

from tests.device.twins import Twins

TEXT = """#include <cuda_runtime.h>
extern "C" __global__ void __launch_bounds__(128) k(const uint32_t* __restrict__ image,
                                                    const uint32_t* __restrict__ x, float* __restrict__ y) {{
  extern __shared__ __align__(1024) unsigned char smem[];
  uint32_t* s = shared_at<uint32_t, {words}>(smem, 0);
  const int thread = threadIdx.x;
  for (int i = thread; i < {words}; i += 128) s[i] = image[i];
  reg<uint32_t, 4> a;
  for (int i = 0; i < 4; ++i) a[i] = x[4 * thread + i];
  reg<{sum}, {columns} / 2> sums;
  for (int i = 0; i < {columns} / 2; ++i) sums[i] = 1;
  fence_async();
  __syncthreads();
  wgmma_fence(sums, a);
  {call}(&sums[0], &sums[{columns} / 4], {a}, wgmma_tile<{chunks}>(smem + {b_at}, {leading}, {stride}));
  wgmma_commit();
  wgmma_wait<0>(sums);
  for (int i = 0; i < {columns} / 2; ++i) y[{columns} / 2 * thread + i] = sums[i];
}}
"""


def place(
    matrix: np.ndarray, chunks: int, across: bool, leading: int, stride: int, at: int, image: np.ndarray
) -> None:
    """Put a factor (rows of a, or columns of b, first) where its descriptor says, byte by byte."""
    size = matrix.dtype.itemsize
    raw = matrix.view(np.uint8).reshape(*matrix.shape, size)
    width = chunks * 16 // size
    for i, k in np.ndindex(*matrix.shape):
        if across:
            byte = i // width * leading + i % width * size + k % 8 * chunks * 16 + k // 8 * stride
        else:
            byte = i // 8 * stride + i % 8 * chunks * 16 + k * size
        byte += at
        byte ^= (byte >> 7 & chunks - 1) << 4
        image[byte : byte + size] = raw[i, k]


def fragment(a: np.ndarray) -> np.ndarray:
    """The registers of 128 threads that hold a (64 rows of 32 bytes) as mma.m16n8 does."""
    words = np.ascontiguousarray(a).view(np.uint32).reshape(4, 2, 8, 2, 4)  # warp, half, row, 16 bytes, lane
    return np.ascontiguousarray(words.transpose(0, 2, 4, 3, 1)).reshape(-1)


@pytest.mark.parametrize("tiles", [False, True], ids=["registers", "tiles"])
@pytest.mark.parametrize(
    "name, dtype, chunks, across, columns",
    [
        ("f16", np.float16, 8, False, 64),
        ("f16", np.float16, 8, True, 128),
        ("bf16", ml_dtypes.bfloat16, 4, False, 32),
        ("bf16", ml_dtypes.bfloat16, 4, True, 64),
        ("f16", np.float16, 2, True, 16),
        ("tf32", np.float32, 8, False, 16),
        ("s8", np.int8, 2, False, 96),
        ("e4m3", ml_dtypes.float8_e4m3fn, 8, False, 8),
    ],
)
def test_products(name: str, dtype: Any, chunks: int, across: bool, columns: int, tiles: bool) -> None:
    """Every way in which a factor may lie in memory, and a in registers; sums begin with 1."""
    size = np.dtype(dtype).itemsize
    depth = 32 // size
    rng = np.random.default_rng(1)
    a, b = [rng.integers(-4, 5, (rows, depth)).astype(dtype) for rows in (64, columns)]
    width = chunks * 16 // size
    # across: atoms of one row of atoms follow each other; along: one atom's width is all that is read
    leading = 128 * chunks if across else 16
    stride = [n // width * 128 * chunks if across else 128 * chunks for n in (columns, 64)]
    b_at = 16384
    image = np.zeros(b_at + max(columns, 64) * 2 * 1024 // 8, np.uint8)
    image = np.concatenate([image, np.zeros(-image.size % 1024 + 4096, np.uint8)])
    place(b, chunks, across, leading, stride[0], b_at, image)
    place(a, chunks, across, leading, stride[1], 0, image)
    call = f"wgmma_m64n{columns}k{depth}_{name}" + ("_tiles" if tiles else "")
    either = size == 2
    flags = f"<{int(across)}, {int(across)}>" if tiles else f"<{int(across)}>"
    source = TEXT.format(
        words=image.size // 4,
        sum="int32_t" if name == "s8" else "float",
        columns=columns,
        call=call + (flags if either else ""),
        a=f"wgmma_tile<{chunks}>(smem, {leading}, {stride[1]})" if tiles else "&a[0]",
        chunks=chunks,
        b_at=b_at,
        leading=leading,
        stride=stride[0],
    )
    y = launch.DeviceArray(128 * columns // 2, np.float32, "y")
    ran = simt.launch(
        simt.compile(source),
        "k",
        [image.view(np.uint32), fragment(a), y],
        grid=1,
        block=128,
        shared_bytes=image.size,
    ).check()
    assert ran.counters["wgmmas"] == 1 and ran.counters["mma_flops"] == 2 * 64 * columns * depth
    # thread -> warp, row, pair; register -> half, block of 8 columns, element
    got = y.array.reshape(4, 8, 4, 2, columns // 8, 2).transpose(0, 3, 1, 4, 2, 5).reshape(64, columns)
    want = a.astype(np.float64) @ b.astype(np.float64).T + 1
    np.testing.assert_array_equal(got, want)


BEGIN = """
  unsigned char* tile = shared_at<unsigned char, 2048>(smem, 0);
  for (int i = 0; i < 4; ++i) *(float*)(tile + 4 * (thread + 128 * i)) = 0;
  reg<float, 32> sums;
  for (int i = 0; i < 32; ++i) sums[i] = 0;
  reg<uint32_t, 4> a;
  for (int i = 0; i < 4; ++i) a[i] = 0;
"""
PRODUCT = "  wgmma_m64n64k16_f16<0>(&sums[0], &sums[16], &a[0], wgmma_tile<2>(smem, 16, 256));"
READY = "  fence_async();\n  __syncthreads();\n  wgmma_fence(sums, a);\n"
DONE = "\n  wgmma_commit();\n  wgmma_wait<0>(sums);\n"
WRITE = "  if (thread == 0) y[0] = sums[0];"


def twins(kind: str, body: str, bad: str, good: str, thread: int | None = None) -> Twins:
    """A kernel of four warps that fill a tile and a's registers, then do what the body says."""
    return Twins(kind, BEGIN + body + WRITE, bad, good, thread, block=128, shared_bytes=2048)


CASES = {
    "bytes without a fence between the proxies": twins(
        "proxy",
        "  @;\n  __syncthreads();\n  wgmma_fence(sums, a);\n" + PRODUCT + "  //!" + DONE,
        "",
        "fence_async()",
    ),
    "bytes that others write, without a barrier": twins(
        "race",
        "  fence_async();\n  @;\n  wgmma_fence(sums, a);\n" + PRODUCT + "  //!" + DONE,
        "",
        "__syncthreads()",
    ),
    "no wgmma_fence": twins(
        "wgmma-fence",
        "  fence_async();\n  __syncthreads();\n  @;\n" + PRODUCT + "  //!" + DONE,
        "",
        "wgmma_fence(sums, a)",
    ),
    "factors loaded after the wgmma_fence": twins(
        "wgmma-fence", READY + "  a[3] = 0;\n  @;\n" + PRODUCT + "  //!" + DONE, "", "wgmma_fence(sums, a)"
    ),
    "sums that the fence does not have": twins(
        "wgmma-fence",
        "  fence_async();\n  __syncthreads();\n  @;\n" + PRODUCT + "  //!" + DONE,
        "wgmma_fence(a)",
        "wgmma_fence(sums, a)",
    ),
    "factors that the fence does not have": twins(
        "wgmma-fence",
        "  fence_async();\n  __syncthreads();\n  @;\n" + PRODUCT + "  //!" + DONE,
        "wgmma_fence(sums)",
        "wgmma_fence(sums, a)",
    ),
    "sums that the wait does not have": twins(
        "wgmma-wait",
        READY + PRODUCT + "\n  wgmma_commit();\n  @;\n  y[thread] = sums[3];  //!\n",
        "wgmma_wait<0>()",
        "wgmma_wait<0>(sums)",
        thread=0,
    ),
    "factors changed before the wait": twins(
        "wgmma-in-flight",
        READY + PRODUCT + "\n  wgmma_commit();\n  @;\n  a[2] = 1;  //!\n  wgmma_wait<0>(sums);\n",
        "",
        "wgmma_wait<0>(sums)",
        thread=0,
    ),
    "sums read before the wait": twins(
        "wgmma-in-flight",
        READY + PRODUCT + "\n  wgmma_commit();\n  @;\n  y[thread] = sums[3];  //!\n  wgmma_wait<0>(sums);\n",
        "",
        "wgmma_wait<0>(sums)",
        thread=0,
    ),
    "sums of a product that was not committed": twins(
        "wgmma-in-flight",
        READY + PRODUCT + "\n  @;\n  wgmma_wait<0>(sums);\n  y[thread] = sums[3];  //!\n",
        "",
        "wgmma_commit()",
        thread=0,
    ),
    "a tile overwritten while it is read": twins(
        "wgmma-in-flight",
        READY
        + PRODUCT
        + "\n  wgmma_commit();\n  @;\n  __syncthreads();\n  tile[4 * thread] = 1;  //!\n"
        + "  wgmma_wait<0>(sums);\n",
        "",
        "wgmma_wait<0>(sums)",
    ),
    "a tile overwritten by a warp that did not wait for the others": twins(
        "race",
        READY + PRODUCT + DONE.rstrip() + "  //!\n  @;\n  tile[4 * thread] = 1;  //!\n",
        "__syncwarp()",
        "__syncthreads()",
    ),
    "a warp that is missing": twins(
        "divergent-warp",
        "  fence_async();\n  __syncthreads();\n  if (@) {\n    wgmma_fence(sums, a);\n"
        + PRODUCT
        + "  //!"
        + DONE
        + "  }\n",
        "unit != 2",
        "unit < 4",
    ),
    "tiles that differ between warps": twins(
        "wgmma-operands",
        READY
        + "  wgmma_m64n32k16_f16<0>(&sums[0], &sums[16], &a[0], wgmma_tile<2>(smem + @, 16, 256));  //!"
        + DONE,
        "unit / 2 * 1024",
        "unit / 4 * 1024",
    ),
    "a stride that leaves what was written": twins(
        "out-of-bounds", READY + PRODUCT.replace("256", "@") + "  //!" + DONE, "512", "256"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_faults(case: Twins) -> None:
    case.check()
