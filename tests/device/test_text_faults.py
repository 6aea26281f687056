# SPDX-License-Identifier: Apache-2.0
"""Faults planted in emitted text are caught: a few kernels here, all by scripts/plant_text_faults.py.

Syncs are the matter of test_every_sync.py.
"""

import collections
import random
import re

import numpy as np
import pytest
from uir_tvm.pipeline import compile_kernel
from uir_tvm.target.registry import TARGETS

from tests.corpus import recipes
from tests.device import ascend_faults, ascend_texts, bang_faults, test_ascend_checks
from tests.device.cuda_faults import TABLE
from tests.device.fault_graphs import ascend_kernels, bang_kernels, cuda_kernels
from tests.device.judge_text import FINDING, RESULT, UNCOMPILED, Judge
from tests.device.text_faults import argument, call, text

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


#: Kinds of Ascend C that change every run of any kernel.
CERTAIN_OF_ASCEND = (
    "event id",
    "flag the other way",
    "misaligned copy",
    "misaligned operand",
    "more than 255 repeats",
    "misaligned tensor",
    "shrunk buffer",
)


@pytest.mark.parametrize("name", ["stream in 2 stages", "padded sum", "product of whole tiles fp16"])
def test_faults_of_ascend_c_are_caught(name: str) -> None:
    """Ids, addresses and sizes are checked."""
    kernels = {about: (kernel, inputs) for about, kernel, inputs in ascend_kernels()}
    kernel, inputs = kernels[name]
    judge = Judge(name, kernel, inputs)
    table, rng = ascend_faults.TABLE, random.Random(name)
    found = {kind: list(table.faults(kernel.source, kind, kernel.report)) for kind in CERTAIN_OF_ASCEND}
    assert found["event id"]
    for faults in found.values():
        for fault in rng.sample(faults, min(1, len(faults))):
            verdict = judge(fault)
            assert verdict.by in (FINDING, RESULT, UNCOMPILED), (fault.kind, fault.line, fault.what)


def test_a_flag_is_dropped_in_all_its_lines() -> None:
    """Numbers of lines in the report are those of the text."""
    for _, kernel, _ in ascend_kernels():
        planned = 0
        for fault in ascend_faults.TABLE.faults(kernel.source, "drop a flag", kernel.report):
            before, after = kernel.source.split("\n"), fault.source.split("\n")
            gone = [old for old, new in zip(before, after, strict=True) if old != new]
            assert len({old.split("(")[0].split("<")[1] for old in gone}) == 1
            assert {old.split("<")[0].strip() for old in gone} == {"SetFlag", "WaitFlag"}
            planned += len(gone)
        flags = [
            line for line in kernel.source.split("\n") if line.lstrip().startswith(("SetFlag", "WaitFlag"))
        ]
        assert planned == len(flags) > 0


@pytest.mark.parametrize("kind", ["drop EnQue", "drop DeQue", "drop FreeTensor", "shrunk buffer of a queue"])
def test_faults_of_queues_are_caught(kind: str) -> None:
    """The printer orders by flags; texts written by hand may have queues."""
    x = np.arange(512, dtype=np.float32)
    source = ascend_texts.text(test_ascend_checks.QUEUES, frame=False)
    found = list(ascend_faults.TABLE.faults(source, kind))
    assert len(found) >= 2
    for fault in found:
        result = ascend_texts.run(fault.source, [x, x.copy(), x.copy()])
        assert result.findings, (fault.line, fault.what)


def test_every_kind_finds_its_place() -> None:
    """A kind whose pattern fits nothing would plant nothing, and be reported as caught."""
    source = """// __syncthreads();
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
  wgmma_fence(sums, a);
  wgmma_m64n8k16_f16<1>(&sums[0], &sums[2], &a[0][0], wgmma_tile<8>(b + 64, 128, 1024));
  wgmma_commit();
  wgmma_wait<0>(sums);
  for (int r = 0; r < 8; ++r) {
    t[r] = __shfl_xor_sync(0xffffffffu, t[r], 4);
  }
  if (col < end) v = load_vec<float, 4>(x + 4 * lane);
}
"""
    for kind in TABLE.kinds:
        found = list(TABLE.faults(source, kind))
        assert found, kind
        assert all(fault.source != source and fault.line > 3 for fault in found), kind


#: Kinds of BANG C that change every run of any kernel.
CERTAIN_OF_BANG_C = (
    "wait for another queue",
    "work of the other core",
    "direction",
    "size that nothing holds",
    "more segments than there may be",
    "dropped instruction",
    "slot of a pipeline",
    "shrunk NRAM",
    "shrunk SRAM",
    "array beyond the memory",
    "clusters launched as cores",
)


@pytest.mark.parametrize(
    "name",
    ["three stages of cores", "three stages of clusters", "five stages of clusters", "sets of 2 cores"],
)
def test_faults_of_bang_c_are_caught(name: str) -> None:
    """Queues, directions, sizes, slots and launches are checked."""
    kernels = {about: (kernel, inputs) for about, kernel, inputs in bang_kernels()}
    kernel, inputs = kernels[name]
    judge = Judge(name, kernel, inputs)
    table, rng = bang_faults.TABLE, random.Random(name)
    found = {kind: list(table.faults(kernel.source, kind)) for kind in CERTAIN_OF_BANG_C}
    assert found["wait for another queue"] or found["work of the other core"]
    for faults in found.values():
        for fault in rng.sample(faults, min(1, len(faults))):
            verdict = judge(fault)
            assert verdict.by in (FINDING, RESULT, UNCOMPILED), (fault.kind, fault.line, fault.what)


#: What each kind of fault in BANG C changes.
BANG_C = """#include <bang.h>
// __sync_cluster(); __nram__ char nram[64]
__nram__ char nram[4096];
__mlu_shared__ char sram[1024];
__wram__ char wram[2048];
__mlu_entry__ void k(const float *x, float *y) {
  if (__is_mpu()) return;
  const int32_t pid = __is_mpu() ? taskIdY * 4 : taskId;
  float *const t = (float *)(nram + 1024);
  const int32_t r = -8 * pid + 33 > 8 ? 8 : -8 * pid + 33;
  if (__is_mpu()) {
    __memcpy((float *)sram, x, 1024, GDRAM2SRAM);
  }
  __sync_cluster();
  for (int32_t k = 0; k < 8; ++k) {
    // store
    __sync();
    __memcpy_async(y, t + 256 * (k & 1), 1024, NRAM2GDRAM);

    // load
    __memcpy_async(t + 256 * (k & 1), x, r * 4, GDRAM2NRAM, 128, 256, 7);
    __sync_io();
    __bang_add_scalar(t, t + 64, 1.0f, 64);
    __bang_transpose(t, u, 32, 64);
    __bang_float2int32_tz(i, t, 64, 0);
  }
  __memcpy_async(w, t, 1024, NRAM2WRAM);
  __memcpy_async(y, t, 4, NRAM2GDRAM, 4, 7, 32, 3, 4, 7, 64, 3);
}

extern "C" void k_launch(cnrtQueue_t queue, const float *x, float *y) {
  cnrtDim3_t dim = {4, 2, 1};
  k<<<dim, cnrtFuncTypeUnion1, queue>>>(x, y);
  k<<<dim, cnrtFuncTypeBlock, queue>>>(x, y);
}
"""


def test_every_kind_of_bang_c_finds_its_place() -> None:
    """As for the others; each changed text differs from the right one behind its comments."""
    for kind in bang_faults.TABLE.kinds:
        found = list(bang_faults.TABLE.faults(BANG_C, kind))
        assert found, kind
        assert all(fault.source != BANG_C and fault.line > 2 for fault in found), kind


#: What each kind of fault in Ascend C changes; syncs of several lines are told of by the report below.
ASCEND_C = """// PipeBarrier<PIPE_V>();
extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y) {
  pipe.InitBuffer(ub, 4096);
  pipe.InitBuffer(in, 2, 256);
  LocalTensor<float> t = ub.GetWithOffset<float>(512, 1024);
  const int32_t r = -8 * pid + 33 > 8 ? 8 : -8 * pid + 33;
  for (int32_t k = 0; k < 8; ++k) {
    DataCopyPad(t, x_gm[64 * k], DataCopyExtParams(r, 148, 4, 2, 0),
                DataCopyPadExtParams<half>(true, 0, 3, 0));
    SetFlag<HardEvent::MTE2_V>((k & 1));
    WaitFlag<HardEvent::MTE2_V>((k & 1));
    Add(t, u, v, 37, 13, BinaryRepeatParams(1, 1, 1, 5, 5, 5));
    PipeBarrier<PIPE_V>();
    WholeReduceSum(s, t, 37, 13, 1, 1, 5);
    Cast(h, t, RoundMode::CAST_RINT, 512);
    CompareScalar(m, t, 0.0f, CMPMODE::LT, 64);
    DataCopy(y_gm, t[8], 64);
  }
  in.EnQue(t);
  LocalTensor<float> b = in.DeQue<float>();
  in.FreeTensor(b);
  CrossCoreSetFlag<2, PIPE_FIX>(3);
  CrossCoreWaitFlag(3);
  DataCopy(l1, x_gm, Nd2NzParams(1, 16, 64, 0, 64, 16, 1, 0));
  LoadData(l0a, l1, LoadData2DParams(0, 8, 1, 0, 0, false, 0));
  Mmad(sums, l0a, l0b, MmadParams(16, 32, 64, 0, false, true));
  Fixpipe<float, float, CFG_ROW_MAJOR>(y_gm, sums, FixpipeParamsV220(32, 16, 16, 32, false));
}
"""


def test_every_kind_of_ascend_c_finds_its_place() -> None:
    """As above; each changed text differs from the right one behind the kernel's first line."""
    lines = [at for at, line in enumerate(ASCEND_C.split("\n"), 1) if "Flag<HardEvent" in line]
    report = {"k": [f"sync 1, MTE2_V, line {lines[0]} {lines[1]}: load t -> add t (raw)"]}
    for kind in ascend_faults.TABLE.kinds:
        found = list(ascend_faults.TABLE.faults(ASCEND_C, kind, report))
        assert found, kind
        assert all(fault.source != ASCEND_C and fault.line > 2 for fault in found), kind


def test_one_argument_of_a_call_is_changed() -> None:
    edit = argument(1, text("{} + 1"), text("f({})"))
    match = re.search(call(r"\w+"), "  Add(t[2 * (k & 1)], (k & 1), Params(1, 2));")
    assert match and list(edit(match)) == [
        "Add(t[2 * (k & 1)], ((k & 1)) + 1, Params(1, 2))",
        "Add(t[2 * (k & 1)], f(((k & 1))), Params(1, 2))",
    ]
