# SPDX-License-Identifier: Apache-2.0
"""Bounds, alignment and unwritten bytes of every memory: each fault is found, its twin is clean."""

import numpy as np
import pytest
from uir_tvm.device import launch
from uir_tvm.target.cuda import host_model as simt

from tests.device.twins import Twins

CASES = {
    "global read past the end": Twins(
        "out-of-bounds", "  y[thread] = x[thread + @];  //!", bad="1000", good="992", thread=24
    ),
    "global write before the start": Twins(
        "out-of-bounds", "  y[thread - @] = x[thread];  //!", bad="3", good="0", thread=0
    ),
    "global row of another block": Twins(
        "out-of-bounds",
        "  y[(block + @) * 256 + thread] = 1.0f;  //!",
        bad="1",
        good="0",
        thread=0,
        grid=4,
        block=256,
    ),
    "shared beyond the pool": Twins(
        "out-of-bounds",
        """
  float* s = reinterpret_cast<float*>(smem);
  s[thread * @] = 1.0f;  //!
  y[thread] = 0.0f;
""",
        bad="9",
        good="8",
        thread=29,
    ),
    "shared outside of the named ranges": Twins(
        "out-of-bounds",
        """
  float* s = shared_at<float, 32>(smem, 0);
  float* t = shared_at<float, 32>(smem, 256);
  s[thread + @] = 1.0f;  //!
  t[thread] = 1.0f;
  y[thread] = 0.0f;
""",
        bad="1",
        good="0",
        thread=31,
    ),
    "shared from one range into its neighbour": Twins(
        "out-of-bounds",
        """
  auto s = shared_at<float, 32>(smem, 0);
  auto t = shared_at<float, 32>(smem, 128);
  t[thread] = 1.0f;
  s[thread + @] = 2.0f;  //!
  y[thread] = 0.0f;
""",
        bad="1",
        good="0",
        thread=31,
    ),
    "range larger than the pool": Twins(
        "out-of-bounds",
        "  float* s = shared_at<float, @>(smem, 0);  //!\n  y[thread] = 0.0f;",
        bad="300",
        good="256",
    ),
    "register index": Twins(
        "out-of-bounds",
        """
  reg<float, 4> a;
  for (int i = 0; i < 4; ++i) a[i] = x[i];
  int i = lane / @;
  y[thread] = a[i];  //!
""",
        bad="7",
        good="8",
        thread=28,
    ),
    "local memory of another thread": Twins(
        "out-of-bounds",
        """
  float mine[2] = {x[0], x[1]};
  float* p = mine;
  unsigned long long at = reinterpret_cast<unsigned long long>(p);
  at = __shfl_sync(0xffffffffu, at, @);
  y[thread] = *reinterpret_cast<float*>(at);  //!
""",
        bad="0",
        good="lane",
        thread=1,
    ),
    "misaligned global vector": Twins(
        "misaligned",
        """
  vec<float, 4> w = load_vec<float, 4>(x + thread * 4 + @);  //!
  store_vec<float, 4>(y + thread * 4, w);
""",
        bad="1",
        good="4",
        thread=0,
    ),
    "misaligned shared vector": Twins(
        "misaligned",
        """
  float* s = shared_at<float, 160>(smem, 0);
  vec<float, 4> w = load_vec<float, 4>(x + thread * 4);
  store_vec<float, 4>(s + thread * @, w);  //!
  y[thread] = 0.0f;
""",
        bad="5",
        good="4",
        thread=1,
    ),
    "unwritten global": Twins("unwritten", "  y[thread] = y[thread + 32];  //!", bad="", good="", thread=0),
    "unwritten shared": Twins(
        "unwritten",
        """
  float* s = shared_at<float, 64>(smem, 0);
  s[thread] = x[thread];
  s[thread + 32 - @] = 1.0f;
  __syncwarp();
  y[thread] = s[thread + 32];  //!
""",
        bad="1",
        good="0",
        thread=31,
    ),
    "unwritten register": Twins(
        "unwritten-register",
        """
  reg<float, 4> a;
  for (int i = 0; i < @; ++i) a[i] = x[i];
  float s = a[0] + a[1] * 2.0f + expf(a[3]);
  y[thread] = s;  //!
""",
        bad="3",
        good="4",
        thread=0,
    ),
}


@pytest.mark.parametrize("name", [name for name in CASES if name != "unwritten global"])
def test_memory(name: str) -> None:
    CASES[name].check()


def test_unwritten_global_is_found_and_its_place_named() -> None:
    case = CASES["unwritten global"]
    finding = case.run("").findings[0]
    assert (finding.kind, finding.line, finding.thread, finding.space) == ("unwritten", 6, 0, "global")
    assert "byte 128 of 'y'" in finding.what


def test_a_part_of_a_tensor_that_nothing_wrote_stays_known() -> None:
    so = simt.compile(
        'extern "C" __global__ void k(float* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = 1.0f; }'
    )
    y = launch.DeviceArray(32, np.float32)
    simt.launch(so, "k", [y, 31], grid=1, block=32).check()
    assert y.first_unwritten == 31 * 4
    simt.launch(so, "k", [y, 32], grid=1, block=32).check()
    assert y.first_unwritten == -1


def test_line_of_the_kernel_and_of_the_device_function() -> None:
    text = """
__device__ __noinline__ float pick(const float* p, int i) {
  return p[i];
}
extern "C" __global__ void k(const float* x, float* y) {
  y[threadIdx.x] = pick(x, threadIdx.x * 2);
}
"""
    result = simt.launch(
        simt.compile(text), "k", [np.zeros(32, np.float32), np.zeros(32, np.float32)], grid=1, block=32
    )
    (finding,) = result.findings
    assert (finding.line, finding.inner_line, finding.thread) == (6, 3, 16)


#: What registers begin with in the first and in the second run of a launch, as the types that hold it.
LOOKALIKES = [
    np.full(64, -91, np.int8),  # 0xa5
    np.full(64, 0x5A, np.int8),
    np.array([0xA5A5A5A5, 0x5A5A5A5A] * 32, np.uint32),
    np.array([0x7FC5A5A5, 0x7FCA5A5A, 0xFFC5A5A5, 0x7FC50000] * 16, np.uint32).view(np.float32),
    np.array([0x7E2D, 0x7E52] * 32, np.uint16).view(np.float16),
]

COPY = """
extern "C" __global__ void k(const {type}* __restrict__ x, {type}* __restrict__ y) {{
  const int thread = threadIdx.x;
  reg<{type}, 4> a;
  for (int i = 0; i < {loaded}; ++i) a[i] = x[4 * thread + i];
  vec<{type}, 4> v;
  for (int i = 0; i < 4; ++i) v.v[i] = a[i];
  store_vec<{type}, 4>(y + 4 * thread, v);
}}
"""
TYPES = {"int8": "signed char", "uint32": "unsigned", "float32": "float", "float16": "__half"}


@pytest.mark.parametrize("data", LOOKALIKES, ids=lambda data: f"{data.dtype}-{data.view(np.uint8)[0]:#x}")
def test_data_that_looks_like_unwritten_registers_is_data(data: np.ndarray) -> None:
    """A launch tells by running again with registers that begin otherwise; the fault is still found."""
    source = "#include <cuda_fp16.h>\n" + COPY.format(type=TYPES[data.dtype.name], loaded=4)
    out = np.zeros_like(data)
    simt.launch(simt.compile(source), "k", [data, out], grid=1, block=16).check()
    assert out.tobytes() == data.tobytes()
    if data.itemsize == 4:  # narrower ones show where a whole word is unwritten
        wrong = simt.compile(source.replace("i < 4; ++i) a[i]", "i < 3; ++i) a[i]"))
        ran = simt.launch(wrong, "k", [data, launch.DeviceArray(64, data.dtype)], grid=1, block=16)
        assert [finding.kind for finding in ran.findings] == ["unwritten-register"]


def test_running_again_begins_with_the_same_memory() -> None:
    """A parameter that is read and written holds after two runs what it holds after one; counters too."""
    source = """
extern "C" __global__ void k(const unsigned* x, unsigned* y, unsigned* z) {
  atomicAdd(z, 1u);
  y[threadIdx.x] += x[threadIdx.x];
}
"""
    so = simt.compile(source)
    counters = []
    for value in (1, 0xA5A5A5A5):
        x, y, z = np.full(32, value, np.uint32), np.zeros(32, np.uint32), np.zeros(1, np.uint32)
        ran = simt.launch(so, "k", [x, y, z], grid=1, block=32).check()
        assert (y == value).all() and z[0] == 32
        counters.append(dict(ran.counters))
    assert counters[0] == counters[1]
