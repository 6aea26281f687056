# SPDX-License-Identifier: Apache-2.0
"""The roofline of library operators: by hand, and where nothing is known."""

from __future__ import annotations

import pytest
from uir_tvm import hardware
from uir_tvm.hardware.library_costs import LIBRARIES, library_time
from uir_tvm.target.ascend import costs as ascend_costs

HW = hardware.get("910b2", "ascend")
#: Cycles before the first and after the last transfer, of 24 cube cores.
START = ascend_costs.KERNEL_CYCLES + 1575 + 497 + 24 * 32.7


def test_a_large_product_is_bound_by_the_cube() -> None:
    """4096^3 in half: 24 cores x 8192 operations at 1.8 GHz, of which it reaches 0.8."""
    time = library_time(HW, "float16", 2 * 4096**3, 3 * 2 * 4096**2)
    assert time is not None and time.bound == "M"
    assert time.arithmetic_seconds == pytest.approx(2 * 4096**3 / (24 * 8192 * 1.8e9 * 0.8))
    assert time.seconds == pytest.approx(time.arithmetic_seconds + START / 1.8e9)


def test_a_product_with_a_vector_is_bound_by_the_memory() -> None:
    """1.6 TB/s for the matrix."""
    time = library_time(HW, "float16", 2 * 4096**2, 2 * 4096**2)
    assert time is not None and time.bound == "memory"
    assert time.seconds == pytest.approx(2 * 4096**2 / 1.6e12 + START / 1.8e9)
    note = time.to_note()
    assert note["pipes"]["memory"]["bytes"] == 2 * 4096**2 and note["bound"] == "memory"


def test_single_precision_takes_four_times_as_long_as_half() -> None:
    half, single = (library_time(HW, dtype, 10**9, 0) for dtype in ("float16", "float32"))
    assert half is not None and single is not None
    assert single.arithmetic_seconds == pytest.approx(4 * half.arithmetic_seconds)


def test_what_is_not_known_has_no_time() -> None:
    assert library_time(HW, "float64", 1, 1) is None
    assert library_time(hardware.get("host"), "float32", 1, 1) is None


@pytest.mark.parametrize("kind", LIBRARIES)
def test_figures_name_what_the_hardware_has(kind: str) -> None:
    """Every preset of the kind has the cores, a clock and a bandwidth; a share is at most all."""
    cost = LIBRARIES[kind]
    for name in hardware.names(kind):
        figures = hardware.get(name, kind).figures
        assert figures[cost.cores] > 0 and figures["clock_hz"] > 0 and figures["dram_bytes_per_second"] > 0
    assert 0 < cost.arithmetic_share <= 1 and 0 < cost.memory_share <= 1 and cost.source
