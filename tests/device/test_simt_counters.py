# SPDX-License-Identifier: Apache-2.0
"""What the host model counts: bytes, sectors, bank conflicts, instructions."""

import numpy as np
import pytest

from tests.device.twins import Twins


def counters(body: str, **shape: int) -> dict[str, int]:
    return dict(Twins("", body, "", "", **shape).run("").check().counters)


@pytest.mark.parametrize(
    "index,sectors,ideal",
    [
        ("lane", 4, 4),  # 128 bytes in a row
        ("lane + 1", 5, 4),  # the same, off by one element
        ("31 - lane", 4, 4),  # order within a warp does not matter
        ("lane * 8", 32, 4),  # one sector each
        ("lane / 2", 2, 2),  # two lanes share an element
        ("0", 1, 1),
    ],
)
def test_sectors_of_a_warp(index: str, sectors: int, ideal: int) -> None:
    found = counters(f"  y[lane] = x[{index}];")
    assert found["global_sectors"] - 4 == sectors
    assert found["global_sectors_ideal"] - 4 == ideal
    assert found["global_uncoalesced"] == (sectors > ideal)
    assert (found["global_load_bytes"], found["global_store_bytes"]) == (128, 128)


@pytest.mark.parametrize(
    "index,passes",
    [("lane", 1), ("lane * 2", 2), ("lane * 32", 32), ("lane * 33", 1), ("0", 1), ("lane / 2 * 32", 16)],
)
def test_bank_conflicts_of_words(index: str, passes: int) -> None:
    found = counters(
        f"""
  float* s = shared_at<float, 1056>(smem, 0);
  for (int i = lane; i < 1056; i += 32) s[i] = 1.0f;
  __syncwarp();
  y[lane] = s[{index}];
""",
        shared_bytes=4224,
    )
    assert found["bank_conflicts"] == passes - 1


@pytest.mark.parametrize("stride,passes", [(4, 4), (8, 8), (16, 16), (20, 4)])
def test_wide_accesses_go_by_quarters_of_a_warp(stride: int, passes: int) -> None:
    found = counters(
        f"""
  auto s = shared_at<float, 640>(smem, 0);
  vec<float, 4> w = load_vec<float, 4>(x);
  store_vec<float, 4>(s + lane * {stride}, w);
  y[lane] = 0.0f;
""",
        shared_bytes=2560,
    )
    assert (found["shared_passes"], found["bank_conflicts"]) == (passes, passes - 4)


def test_instructions_are_counted_for_a_warp_and_a_block() -> None:
    found = counters(
        """
  float v = __shfl_xor_sync(0xffffffffu, x[thread], 1);
  __syncwarp();
  __syncthreads();
  named_barrier(1 + unit, 32);
  y[thread + 64 * block] = v;
""",
        block=64,
        grid=3,
    )
    assert found["shuffles"] == 6 and found["syncwarps"] == 6
    assert found["syncthreads"] == 3 and found["named_barriers"] == 6
    assert found["global_loads"] == found["global_stores"] == 192


def test_a_lane_that_runs_ahead_is_matched_with_the_others() -> None:
    found = counters("  float s = 0;\n  for (int i = 0; i < 700; ++i) s += x[lane + i];\n  y[lane] = s;")
    assert found["global_warp_accesses"] == 701
    whole = sum(int(np.ceil((i % 8 + 32) / 8)) for i in range(700))
    assert found["global_sectors"] == whole + 4
