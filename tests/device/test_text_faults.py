# SPDX-License-Identifier: Apache-2.0
"""Faults planted in emitted text are caught: a few kernels here, all by scripts/plant_text_faults.py."""

import collections
import random

import pytest
from uir_tvm.pipeline import compile_kernel
from uir_tvm.target.registry import TARGETS

from tests.corpus import recipes
from tests.device.cuda_faults import TABLE
from tests.device.fault_graphs import cuda_kernels
from tests.device.judge_text import FINDING, RESULT, Judge

#: Kinds that change every run of any kernel: each of them is caught wherever it is planted.
CERTAIN = (
    "drop __syncthreads",
    "drop cp_async_wait",
    "lane mask",
    "misaligned vector",
    "off by one store",
)


@pytest.mark.parametrize("case", ["product 33x65 65x17 17", "column mean 4x32x96", "softmax 5x1000"])
def test_faults_are_caught(case: str) -> None:
    example = recipes.example(case)
    kernel = compile_kernel(example.func, TARGETS["uir-cuda"].target("h200"), "kernel").lowered
    judge = Judge(case, kernel, example.inputs)
    rng = random.Random(case)
    by = collections.Counter[str]()
    for kind in CERTAIN:
        found = list(TABLE.faults(kernel.source, kind))
        for fault in rng.sample(found, min(1, len(found))):
            verdict = judge(fault)
            by[verdict.by] += 1
            assert verdict.by in (FINDING, RESULT), (fault.kind, fault.line, fault.what)
    assert by[FINDING] >= 2


@pytest.mark.parametrize("name", ["named barriers", "barriers of the grid", "bulk copies of a warp"])
def test_every_fault_of_a_barrier_is_caught(name: str) -> None:
    """Barrier objects, those of a part of the block and of the grid: dropped, or with any number wrong."""
    kernels = {about: (kernel, inputs) for about, kernel, inputs in cuda_kernels()}
    kernel, inputs = kernels[name]
    judge = Judge(name, kernel, inputs)
    about = ("mbarrier", "barrier object", "named", "grid")
    kinds = [kind for kind in TABLE.kinds if any(part in kind for part in about)]
    found = [fault for kind in kinds for fault in TABLE.faults(kernel.source, kind)]
    for fault in random.Random(name).sample(found, min(len(found), 8)):
        assert judge(fault).by in (FINDING, RESULT), (fault.kind, fault.line, fault.what)
    assert found


def test_every_kind_finds_its_place() -> None:
    """A kind whose pattern fits nothing would plant nothing, and be reported as caught."""
    text = """// __syncthreads();
extern "C" __global__ void k(const float* x, float* y) {
  // __syncthreads(); in a comment is none
  auto s = shared_at<float, 64>(smem, 128);
  const int lane_div4 = lane / 4;
  const int lane_mod4 = lane % 4;
  cp_async_16_zfill(s + line * 16 + at, x + 4, min(max(end - at, 0), 4) * 4);
  cp_async_commit();
  cp_async_wait<1>();
  mbarrier_expect_tx(bar, 128);
  mbarrier_wait(bar, 0);
  __syncwarp();
  __syncthreads();
  named_barrier(1 + unit / 2, 64);
  mbarrier_init(bar, 2);
  cooperative_groups::this_grid().sync();
  fence_async();
  wgmma_fence();
  wgmma_m64n8k16_f16<1>(&sums[0], &sums[2], &a[0][0], wgmma_tile<8>(b + 64, 128, 1024));
  wgmma_commit();
  wgmma_wait<0>();
  for (int r = 0; r < 8; ++r) {
    t[r] = __shfl_xor_sync(0xffffffffu, t[r], 4);
  }
  if (col < end) v = load_vec<float, 4>(x + 4 * lane);
}
"""
    for kind in TABLE.kinds:
        found = list(TABLE.faults(text, kind))
        assert found, kind
        assert all(fault.source != text and fault.line > 3 for fault in found), kind
