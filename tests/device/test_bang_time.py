# SPDX-License-Identifier: Apache-2.0
"""The modelled time of the MLU: that it is what the model says, from the costs that it is given."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.target.bang import costs as bang_costs

from tests.device import bang_texts as texts

FIGURES = texts.DEVICE["figures"]
CLOCK = FIGURES["clock_hz"]
IO = bang_costs.PIPES["IO"]


def cycles(seconds: float) -> float:
    return seconds * CLOCK


def modelled(body: str, arrays: list[np.ndarray] | None = None, **how: int) -> dict:
    result = texts.run(texts.text(body), arrays or [], on=texts.DEVICE, timeline=True, **how)
    result.check()
    return dict(result.modelled)


def test_a_function_takes_its_passes() -> None:
    """128 bytes in a cycle, as many cycles as the function's row says, and a start."""
    fill = "  __bang_write_value(a, 1000, 1.0f);\n"
    lone = modelled(fill)
    both = modelled(fill + "  __bang_sqrt(b, a, 1000);")
    passes = -(-4000 // 128)
    took = cycles(both["seconds"]) - cycles(lone["seconds"])
    assert took == pytest.approx(bang_costs.START + passes * bang_costs.PASSES["sqrt"])
    assert cycles(lone["seconds"]) == pytest.approx(bang_costs.KERNEL_CYCLES + bang_costs.START + passes)
    assert both["bound"] == "COMPUTE" and both["pipes"]["COMPUTE"]["instructions"] == 2


def test_a_lone_transfer_takes_its_queues_rate() -> None:
    times = [modelled(f"  __memcpy_async(a, x, {n}, GDRAM2NRAM);")["seconds"] for n in (512, 1024)]
    rate = min(IO.bytes_per_cycle, FIGURES["cluster_bytes_per_second"] / CLOCK)
    assert cycles(times[1] - times[0]) == pytest.approx(512 / rate)


def test_all_cores_share_the_memory() -> None:
    """Sixteen cores that stream reach the full bandwidth, and no more."""
    size = 1 << 13
    body = f"""  char *const mine = (char *)x + taskId * {32 * size};
  for (int i = 0; i < 32; ++i) {{
    __memcpy_async(nram + i % 2 * {size}, mine + i * {size}, {size}, GDRAM2NRAM);
  }}"""
    x = np.ones(16 * 32 * size // 4, np.float32)
    result = modelled(body, [x], groups=16)
    rate = x.nbytes / result["seconds"]
    assert 0.85 * FIGURES["dram_bytes_per_second"] < rate <= FIGURES["dram_bytes_per_second"]
    assert result["bound"] == "memory"
    assert result["pipes"]["memory"]["bytes"] == x.nbytes


def test_queues_overlap_until_a_wait() -> None:
    """A copy and a function at the same time; after a wait one behind the other."""
    head = "  __bang_write_value(b, 1024, 1.0f);\n  __sync();\n"
    body = head + "  __memcpy_async(a, x, 1024, GDRAM2NRAM);\n  {}__bang_sqrt(c, b, 1024);"
    beside = modelled(body.replace("{}", ""))["timeline"]
    behind = modelled(body.replace("{}", "__sync_io();\n  "))["timeline"]
    copy, function = beside[1], beside[2]
    assert function["start"] < copy["end"]
    assert behind[2]["start"] >= behind[1]["end"]
    assert (function["pipe"], function["name"]) == ("COMPUTE", "__bang_sqrt")


def test_short_writes_read_first() -> None:
    """A write that covers no whole access of 64 bytes reads it: its bytes count twice and more."""
    head = "  __bang_write_value(a, 64, 1.0f);\n  __sync_compute();\n"
    whole = modelled(head + "  __memcpy_async(z, a, 128, NRAM2GDRAM);")
    short = modelled(head + "  __memcpy_async(z + 1, a, 128, NRAM2GDRAM);")
    assert whole["pipes"]["memory"]["bytes"] == 128
    assert short["pipes"]["memory"]["bytes"] == 128 + 2 * bang_costs.ACCESS_BYTES


def test_products_take_the_matrix_units_rate() -> None:
    head = "  __bang_write_zero(a, 1024);\n  __sync_compute();\n  __memcpy(w, a, 4096, NRAM2WRAM);\n"
    lone = modelled(head)
    product = modelled(head + "  __bang_matmul(c, a, w, 32, 16, 64);")
    took = cycles(product["seconds"] - lone["seconds"])
    assert took == pytest.approx(2 * 32 * 16 * 64 / FIGURES["matmul_f32"] + bang_costs.START)


def test_more_groups_than_clusters_follow_each_other() -> None:
    body = "  if (__is_mpu()) return;\n  __bang_write_value(a, 4096, 1.0f);"
    body = body.replace("4096", "2048")
    one = cycles(modelled(body, groups=4, units=4)["seconds"]) - bang_costs.KERNEL_CYCLES
    two = cycles(modelled(body, groups=8, units=4)["seconds"]) - bang_costs.KERNEL_CYCLES
    assert two == pytest.approx(2 * one)


def test_without_costs_no_time_is_counted() -> None:
    result = texts.run(texts.text("  __sync();"), on={"figures": FIGURES})
    assert result.modelled["seconds"] == 0
