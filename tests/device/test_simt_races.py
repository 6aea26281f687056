# SPDX-License-Identifier: Apache-2.0
"""Accesses that nothing orders, between lanes, warps and blocks, in whatever order the model runs them."""

import pytest

from tests.device.twins import Twins

NEIGHBOUR = """
  float* s = shared_at<float, 256>(smem, 0);
  s[thread] = x[thread];
  @;
  y[thread] = s[thread ^ {distance}];  //!
"""

CASES = {
    "lanes of a warp without __syncwarp": Twins(
        "race", NEIGHBOUR.format(distance=1), bad="", good="__syncwarp()", thread=1
    ),
    "a shuffle is no barrier": Twins(
        "race",
        NEIGHBOUR.format(distance=1),
        bad="__shfl_xor_sync(0xffffffffu, lane, 1)",
        good="__syncwarp()",
        thread=0,
    ),
    "warps with __syncwarp only": Twins(
        "race", NEIGHBOUR.format(distance=32), bad="__syncwarp()", good="__syncthreads()", thread=32, block=64
    ),
    "the barrier of other warps": Twins(
        "race",
        NEIGHBOUR.format(distance=64),
        bad="named_barrier(1 + unit / 2, 64)",
        good="named_barrier(1 + unit % 2, 64)",
        thread=0,
        block=128,
    ),
    "overwritten before all have read": Twins(
        "race",
        """
  float* s = shared_at<float, 64>(smem, 0);
  s[thread] = x[thread];
  __syncthreads();
  float v = s[thread ^ 32];
  @;
  s[thread] = v;  //!
  y[thread] = v;
""",
        bad="__syncwarp()",
        good="__syncthreads()",
        block=64,
    ),
    "half a warp synchronised": Twins(
        "race",
        """
  float* s = shared_at<float, 32>(smem, 0);
  s[thread] = x[thread];
  __syncwarp(@);
  y[thread] = s[thread ^ 16];  //!
""",
        bad="lane < 16 ? 0x0000ffffu : 0xffff0000u",
        good="0xffffffffu",
        thread=0,
    ),
    "bytes of one word are apart": Twins(
        "race",
        """
  unsigned char* s = shared_at<unsigned char, 64>(smem, 0);
  s[thread + 1] = 1;
  if (lane == 0) s[@] = 2;  //!
  y[thread] = 0.0f;
""",
        bad="5",
        good="0",
    ),
    "two writers of one element": Twins("race", "  y[thread / @] = 1.0f;  //!", bad="2", good="1", thread=1),
    "blocks that share an element": Twins(
        "race", "  y[thread + block * @] = x[thread];  //!", bad="31", good="32", thread=0, grid=2
    ),
    "a block reads what another writes": Twins(
        "race",
        """
  y[thread + 32 * block] = x[thread];
  __threadfence();
  if (block == 1) y[thread + 64] = y[thread + @];  //!
""",
        bad="0",
        good="32",
        thread=0,
        grid=2,
    ),
    "atomic and plain": Twins(
        "race",
        "  if (lane > 0) @;\n  else y[0] = 1.0f;  //!",
        bad="y[0] = 2.0f  //!\n  ",
        good="y[lane] = 2.0f",
    ),
    "grid without its barrier": Twins(
        "race",
        """
  y[thread + 32 * block] = x[thread];
  @;
  y[thread + 256 + 32 * block] = y[thread + 32 * (block ^ 1)];  //!
""",
        bad="__syncthreads()",
        good="cooperative_groups::this_grid().sync()",
        grid=4,
        cooperative=True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_race(name: str) -> None:
    CASES[name].check()


def test_both_sides_are_named() -> None:
    case = CASES["warps with __syncwarp only"]
    race = next(finding for finding in case.run(case.bad).findings if finding.kind == "race")
    assert {race.line, race.other_line} == {7, 9}
    assert abs(race.thread - race.other_thread) == 32


def test_a_race_after_many_barriers_is_found() -> None:
    """Clocks do not stop at 2^20: what two threads do after as many barriers is not in order by that."""
    body = """
  float* s = shared_at<float, 256>(smem, 0);
  for (int i = 0; i < (1 << 20) + 8; ++i) __syncthreads();
  s[thread] = x[thread];
  @;
  y[thread] = s[thread ^ 1];  //!
"""
    Twins("race", body, bad="", good="__syncthreads()", block=2, words=2).check()


def test_atomics_of_many_blocks_do_not_race() -> None:
    body = "  if (thread == 0 && block == 0) atomicExch(y, 0.0f);\n  atomicAdd(y + 1, 1.0f);"
    assert {finding.kind for finding in Twins("", body, "", "", grid=3).run("").findings} == {"unwritten"}


def test_readers_of_all_blocks_do_not_race() -> None:
    assert not Twins("", "  y[thread + 32 * block] = x[0] + x[lane];", "", "", grid=8).run("").findings
