# SPDX-License-Identifier: Apache-2.0
"""Meetings that cannot take place: divergent barriers, wrong masks, lanes that have ended."""

import numpy as np
import pytest
from uir_tvm.target.cuda import host_model as simt

from tests.device.twins import Twins

CASES = {
    "barrier in a branch of some threads": Twins(
        "divergent-barrier",
        "  if (thread < @) __syncthreads();  //!\n  y[thread] = 0.0f;",
        bad="32",
        good="64",
        block=64,
    ),
    "threads that ended": Twins(
        "divergent-barrier",
        "  y[thread] = 0.0f;\n  if (unit == @) return;\n  __syncthreads();  //!",
        bad="1",
        good="2",
        block=64,
    ),
    "two places of one barrier": Twins(
        "divergent-barrier",
        """
  y[thread] = 0.0f;
  if (unit < @) {
    y[thread] = 1.0f;
    __syncthreads();  //!
  } else {
    y[thread] = 2.0f;
    __syncthreads();  //!
  }
""",
        bad="1",
        good="2",
        block=64,
    ),
    "named barrier of too many": Twins(
        "divergent-barrier",
        "  y[thread] = 0.0f;\n  if (unit < 2) named_barrier(1, @);  //!",
        bad="96",
        good="64",
        block=96,
    ),
    "named barrier of too few": Twins(
        "barrier-count",
        "  y[thread] = 0.0f;\n  named_barrier(1, @);  //!",
        bad="64",
        good="96",
        block=96,
    ),
    "named barrier with two counts": Twins(
        "barrier-count",
        "  y[thread] = 0.0f;\n  named_barrier(1, unit == 0 ? @ : 96);  //!",
        bad="64",
        good="96",
        block=96,
    ),
    "barrier number": Twins(
        "barrier-count", "  y[thread] = 0.0f;\n  named_barrier(@, 32);  //!", bad="16", good="15", thread=0
    ),
    "mask without the caller": Twins(
        "mask",
        "  y[thread] = 0.0f;\n  if (lane < 16) y[thread] = __shfl_xor_sync(@, 1.0f, 1);  //!",
        bad="0x00007fffu",
        good="0x0000ffffu",
        thread=15,
    ),
    "mask with lanes that do not come": Twins(
        "divergent-warp",
        """
  y[thread] = 0.0f;
  if (lane < 16) y[thread] = __shfl_xor_sync(@, 1.0f, 1);  //!
  __syncthreads();
""",
        bad="0xffffffffu",
        good="0x0000ffffu",
        thread=0,
    ),
    "lanes with different masks": Twins(
        "divergent-warp",
        "  y[thread] = __shfl_xor_sync(lane < 16 ? @ : 0xffffffffu, 1.0f, 1);  //!",
        bad="0x7fffffffu",
        good="0xffffffffu",
    ),
    "source that ended": Twins(
        "shuffle-source",
        """
  y[thread] = 0.0f;
  if (lane == 31) return;
  y[thread] = __shfl_sync(0xffffffffu, 1.0f, @);  //!
""",
        bad="31",
        good="30",
        thread=0,
    ),
    "source outside of the mask": Twins(
        "shuffle-source",
        "  y[thread] = 0.0f;\n  if (lane < 8) y[thread] = __shfl_sync(0x000000ffu, 1.0f, @);  //!",
        bad="lane + 1",
        good="(lane + 1) % 8",
        thread=7,
    ),
    "width of a shuffle": Twins(
        "shuffle-width",
        "  y[thread] = __shfl_sync(0xffffffffu, 1.0f, 0, @);  //!",
        bad="12",
        good="8",
        thread=0,
    ),
    "grid barrier of an ordinary launch": Twins(
        "divergent-barrier",
        "  y[thread] = 0.0f;\n  @;  //!",
        bad="cooperative_groups::this_grid().sync()",
        good="__syncthreads()",
        thread=0,
    ),
    "grid barrier that a block leaves out": Twins(
        "divergent-barrier",
        "  y[thread + 32 * block] = 0.0f;\n  if (block < @) cooperative_groups::this_grid().sync();  //!",
        bad="2",
        good="3",
        grid=3,
        cooperative=True,
    ),
    "trap": Twins(
        "trap", "  y[thread] = 0.0f;\n  if (lane == @) __trap();  //!", bad="7", good="32", thread=7
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_meeting(name: str) -> None:
    CASES[name].check()


def test_an_endless_kernel_ends_at_its_limit() -> None:
    text = 'extern "C" __global__ void k(volatile int* y) { while (y[0] == 0) { __syncwarp(); } }'
    result = simt.launch(simt.compile(text), "k", [np.zeros(1, np.int32)], grid=1, block=32, max_seconds=0.2)
    assert [finding.kind for finding in result.findings] == ["time-limit"]
