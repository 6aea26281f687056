# SPDX-License-Identifier: Apache-2.0
"""The modelled time of kernels on the 910B: what it counts, and what orders cost."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.target.ascend import costs as ascend_costs

from tests.device import ascend_texts as texts

CLOCK = texts.DEVICE["figures"]["clock_hz"]
HBM = texts.DEVICE["figures"]["dram_bytes_per_second"]
ROWS, N = 16, 8192


def stream(passes: int) -> str:
    """Each core loads rows of 32 KiB, adds to them `passes` times and stores them; two places each."""
    work = "    PipeBarrier<PIPE_V>(); Adds(u[p], u[p], 1.0f, N);\n" * (passes - 1)
    body = f"""  constexpr int N = {N};
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 4 * N * 4);
  GlobalTensor<float> gx, gz;
  gx.SetGlobalBuffer((__gm__ float*)x);
  gz.SetGlobalBuffer((__gm__ float*)z);
  LocalTensor<float> t[2] = {{ub.GetWithOffset<float>(N, 0), ub.GetWithOffset<float>(N, N * 4)}};
  LocalTensor<float> u[2] = {{ub.GetWithOffset<float>(N, N * 8), ub.GetWithOffset<float>(N, N * 12)}};
  for (int i = 0; i < 2; ++i) {{ SetFlag<HardEvent::V_MTE2>(i); SetFlag<HardEvent::MTE3_V>(i); }}
  for (int i = 0; i < {ROWS}; ++i) {{
    int p = i % 2;
    int64_t row = (GetBlockIdx() * {ROWS} + i) * N;
    WaitFlag<HardEvent::V_MTE2>(p);
    DataCopy(t[p], gx[row], N);
    SetFlag<HardEvent::MTE2_V>(p); WaitFlag<HardEvent::MTE2_V>(p);
    WaitFlag<HardEvent::MTE3_V>(p);
    Adds(u[p], t[p], 1.0f, N);
    SetFlag<HardEvent::V_MTE2>(p);
{work}
    SetFlag<HardEvent::V_MTE3>(p); WaitFlag<HardEvent::V_MTE3>(p);
    DataCopy(gz[row], u[p], N);
    SetFlag<HardEvent::MTE3_V>(p);
  }}
  for (int i = 0; i < 2; ++i) {{ WaitFlag<HardEvent::V_MTE2>(i); WaitFlag<HardEvent::MTE3_V>(i); }}"""
    return texts.text(body, frame=False)


def modelled(source: str, blocks: int, timeline: bool = False) -> dict:
    x, z = np.zeros(blocks * ROWS * N, np.float32), np.zeros(blocks * ROWS * N, np.float32)
    result = texts.run(source, [x, x[:64].copy(), z], blocks=blocks, timed=True, timeline=timeline).check()
    return dict(result.modelled)


def test_a_stream_on_all_cores_is_bound_by_memory() -> None:
    time = modelled(stream(1), 48)
    bytes_moved = 2 * 48 * ROWS * N * 4
    assert time["bound"] == "memory" and time["pipes"]["memory"]["bytes"] == bytes_moved
    ideal = bytes_moved / HBM
    assert ideal < time["seconds"] < ideal / 0.85, "at least 85 % of the bandwidth, and no more than it"


def test_one_core_is_bound_by_its_own_rate() -> None:
    time = modelled(stream(1), 1)
    moved = ROWS * N * 4
    rate = ascend_costs.PIPES["MTE2"].bytes_per_cycle
    assert time["bound"] in ("MTE2", "MTE3")
    np.testing.assert_allclose(time["pipes"]["MTE2"]["busy_seconds"], moved / rate / CLOCK, rtol=1e-6)
    assert time["pipes"]["MTE2"]["bytes"] == time["pipes"]["MTE3"]["bytes"] == moved


def test_much_arithmetic_binds_the_vector_unit() -> None:
    time = modelled(stream(60), 48)
    cost = ascend_costs.VECTOR["Adds"]
    assert time["bound"] == "V"
    np.testing.assert_allclose(time["pipes"]["V"]["busy_seconds"], ROWS * 60 * cost.k4 * N / CLOCK, rtol=1e-6)
    # Each waits for the one before: its latency too.
    assert time["seconds"] > ROWS * 60 * (cost.k4 * N + cost.b4) / CLOCK


def test_loads_run_ahead_of_the_vector_unit() -> None:
    rows = modelled(stream(4), 1, timeline=True)["timeline"]
    loads = [row for row in rows if row["pipe"] == "MTE2"]
    adds = [row for row in rows if row["pipe"] == "V"]
    assert {row["name"] for row in adds} == {"Adds"} and len(adds) == 4 * ROWS
    assert loads[1]["start"] < adds[0]["end"], "the second load does not wait for the first tile's arithmetic"
    assert loads[2]["start"] >= adds[0]["end"], "the third needs the first tile's place"
    assert all(row["start"] < row["end"] for row in rows)


def test_a_barrier_costs_the_latency_that_would_overlap() -> None:
    def seconds(between: str) -> float:
        body = "\n".join(f"  Adds(t[{i} * 64], t[{i} * 64], 1.0f, 64); {between}" for i in range(64))
        source = texts.text(
            f"  auto t = ub.GetWithOffset<float>(4096, 0);\n  Duplicate(t, 0.0f, 4096); {texts.ALL}\n{body}"
        )
        x = np.ones(64, np.float32)
        return texts.run(source, [x, x, x], timed=True).check().modelled["seconds"]

    latency = ascend_costs.VECTOR["Adds"].b4 / CLOCK
    with_all, with_few = seconds("PipeBarrier<PIPE_V>();"), seconds("")
    assert with_all - with_few == pytest.approx(63 * latency, rel=0.1)


def test_a_cache_answers_what_was_read_before() -> None:
    source = texts.text(
        f"""  LocalTensor<float> t = ub.GetWithOffset<float>(8192, 0);
  for (int i = 0; i < 8; ++i) {{ DataCopy(t, gx, 8192); {texts.ALL} }}"""
    )
    x = np.zeros(8192, np.float32)
    time = texts.run(source, [x, x[:64].copy(), x.copy()], timed=True).modelled
    assert time["pipes"]["memory"]["bytes"] == 32768 and time["pipes"]["MTE2"]["bytes"] == 8 * 32768


def test_pieces_of_a_line_are_each_paid_for() -> None:
    """Rows of 64 bytes, then what lies between them: the memory moves every sector of 32 bytes once."""
    source = texts.text(
        f"""  LocalTensor<float> t = ub.GetWithOffset<float>(8192, 0);
  for (int i = 0; i < 4; ++i) {{
    DataCopyPad(t, gx[16 * i], DataCopyExtParams(64, 64, 192, 0, 0),
                DataCopyPadExtParams<float>(false, 0, 0, 0));
    {texts.ALL}
  }}"""
    )
    x = np.zeros(4096, np.float32)
    time = texts.run(source, [x, x[:64].copy(), x.copy()], timed=True).modelled
    assert time["pipes"]["memory"]["bytes"] == time["pipes"]["MTE2"]["bytes"] == 4 * 4096


def test_without_a_device_no_time_is_counted() -> None:
    x = np.ones(64, np.float32)
    result = texts.run(texts.text("  PipeBarrier<PIPE_V>();"), [x, x, x])
    assert result.modelled["seconds"] == 0 and result.modelled["bound"] == ""
