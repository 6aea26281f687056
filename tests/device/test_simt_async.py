# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies: their bytes are in flight until somebody waits, and only who waits may read them."""

import pytest

from tests.device.twins import Twins

CP = """
  float* s = shared_at<float, 256>(smem, 0);
  cp_async_16(s + 4 * thread, x + 4 * thread);
  cp_async_commit();
  cp_async_16(s + 128 + 4 * thread, x + 128 + 4 * thread);
  cp_async_commit();
"""
BAR = """
  uint64_t* bar = shared_at<uint64_t, 1>(smem, 0);
  float* s = shared_at<float, 32>(smem, 128);
  if (thread == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
  }
  __syncthreads();
  if (thread == 0) {
    mbarrier_expect_tx(bar, @);
    bulk_copy(s, x, 128, bar);
  }
"""

CASES = {
    "read before the wait": Twins(
        "async-in-flight",
        CP + "  cp_async_wait<@>();\n  y[thread] = s[4 * thread];  //!\n  cp_async_wait<0>();",
        bad="2",
        good="1",
        thread=0,
    ),
    "read of the group that is still on its way": Twins(
        "async-in-flight",
        CP + "  cp_async_wait<@>();\n  y[thread] = s[128 + 4 * thread];  //!\n  cp_async_wait<0>();",
        bad="1",
        good="0",
        thread=0,
    ),
    "read of another lane's copy without a barrier": Twins(
        "race",
        CP + "  cp_async_wait<0>();\n  @;\n  y[thread] = s[4 * (thread ^ 1)];  //!",
        bad="",
        good="__syncwarp()",
    ),
    "copy onto what others still read": Twins(
        "race",
        """
  float* s = shared_at<float, 128>(smem, 0);
  for (int i = 0; i < 2; ++i) {
    cp_async_16(s + 4 * thread, x + 128 * i + 4 * thread);  //!
    cp_async_commit();
    cp_async_wait<0>();
    __syncwarp();
    y[32 * i + thread] = s[4 * (thread ^ 1)];
    @;
  }
""",
        bad="",
        good="__syncwarp()",
    ),
    "not committed": Twins(
        "async-in-flight",
        """
  float* s = shared_at<float, 128>(smem, 0);
  cp_async_16(s + 4 * thread, x + 4 * thread);
  @;
  cp_async_wait<0>();
  y[thread] = s[4 * thread];  //!
""",
        bad="",
        good="cp_async_commit()",
        thread=0,
    ),
    "misaligned copy": Twins(
        "misaligned",
        """
  float* s = shared_at<float, 128>(smem, 0);
  cp_async_16(s + 4 * thread, x + @ * thread);  //!
  cp_async_commit();
  cp_async_wait<0>();
  y[thread] = s[4 * thread];
""",
        bad="3",
        good="4",
        thread=1,
    ),
    "copy past the end of a tensor": Twins(
        "out-of-bounds",
        """
  float* s = shared_at<float, 128>(smem, 0);
  cp_async_16_zfill(s + 4 * thread, x + 904 + 4 * thread, thread < 30 ? 16 : @);  //!
  cp_async_commit();
  cp_async_wait<0>();
  y[thread] = s[4 * thread];
""",
        bad="16",
        good="0",
        thread=30,
    ),
    "bulk copy read before the wait": Twins(
        "async-in-flight",
        BAR.replace("@", "128") + "  @;\n  y[thread] = s[thread];  //!\n  mbarrier_wait(bar, 0);",
        bad="",
        good="mbarrier_wait(bar, 0)",
        thread=0,
    ),
    "barrier object that the engine does not see": Twins(
        "proxy",
        BAR.replace("fence_mbarrier_init();", "@;")
        .replace("expect_tx(bar, @)", "expect_tx(bar, 128)")
        .replace("bulk_copy(s, x, 128, bar);", "bulk_copy(s, x, 128, bar);  //!")
        + "  mbarrier_wait(bar, 0);\n  y[thread] = s[thread];",
        bad="",
        good="fence_mbarrier_init()",
        thread=0,
    ),
    "bulk copy before others see the barrier object": Twins(
        "race",
        """
  uint64_t* bar = shared_at<uint64_t, 1>(smem, 0);
  float* s = shared_at<float, 32>(smem, 128);
  if (thread == 0) {
    mbarrier_init(bar, 1);
    fence_async();
    mbarrier_expect_tx(bar, 128);
  }
  @;
  if (thread == 1) bulk_copy(s, x, 128, bar);  //!
  __syncthreads();
  mbarrier_wait(bar, 0);
  y[thread] = s[thread];
""",
        bad="",
        good="__syncwarp()",
        thread=1,
    ),
    "bytes that never come": Twins(
        "mbarrier", BAR + "  mbarrier_wait(bar, 0);  //!\n  y[thread] = s[thread];", bad="256", good="128"
    ),
    "phase that was not reached": Twins(
        "mbarrier",
        BAR.replace("@", "128")
        + "  mbarrier_wait(bar, 0);\n  mbarrier_wait(bar, @);  //!\n  y[thread] = s[thread];",
        bad="1",
        good="0",
    ),
    "barrier object without initialisation": Twins(
        "mbarrier",
        """
  uint64_t* bar = shared_at<uint64_t, 2>(smem, 0);
  if (thread == 0) mbarrier_init(bar + @, 32);
  __syncwarp();
  mbarrier_arrive(bar);  //!
  mbarrier_wait(bar, 0);
  y[thread] = 0.0f;
""",
        bad="1",
        good="0",
        thread=0,
    ),
    "initialisation that others may not see": Twins(
        "race",
        """
  uint64_t* bar = shared_at<uint64_t, 1>(smem, 0);
  if (thread == 0) mbarrier_init(bar, 32);
  @;
  mbarrier_arrive(bar);  //!
  mbarrier_wait(bar, 0);
  y[thread] = 0.0f;
""",
        bad="",
        good="__syncwarp()",
        thread=1,
    ),
    "arrivals order what came before": Twins(
        "race",
        """
  uint64_t* bar = shared_at<uint64_t, 1>(smem, 0);
  float* s = shared_at<float, 64>(smem, 128);
  if (thread == 0) mbarrier_init(bar, 64);
  __syncthreads();
  s[thread] = x[thread];
  mbarrier_arrive(bar);
  @;
  y[thread] = s[thread ^ 32];  //!
  mbarrier_wait(bar, 0);
""",
        bad="",
        good="mbarrier_wait(bar, 0)",
        block=64,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_async(name: str) -> None:
    CASES[name].check()
