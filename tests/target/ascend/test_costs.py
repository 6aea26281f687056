# SPDX-License-Identifier: Apache-2.0
"""Costs of vector instructions: plain data, and in the proportions that the hardware's width sets."""

from __future__ import annotations

import json

import pytest
from uir_tvm import hardware
from uir_tvm.target.ascend import costs as ascend_costs


def test_data_survives_json() -> None:
    data = ascend_costs.as_data()
    assert json.loads(json.dumps(data)) == data
    assert set(data["vector"]) == set(ascend_costs.VECTOR) and data["default"] in data["vector"]


@pytest.mark.parametrize("name", ascend_costs.VECTOR)
def test_no_function_is_faster_than_its_pipe(name: str) -> None:
    """A repeat is 256 bytes a cycle: 64 elements of four bytes, 128 of two; fits are a tenth off."""
    cost = ascend_costs.VECTOR[name]
    assert cost.k4 * 64 > 0.7 and cost.k2 * 128 > 0.8
    assert cost.b4 > 0 and cost.b2 > 0


def test_loads_and_stores_of_all_cores_reach_the_memory() -> None:
    """One pipe alone may saturate the memory: the device's bandwidth is what binds, not a core's."""
    for name in hardware.names("ascend"):
        figures = hardware.get(name, "ascend").figures
        for pipe in ("MTE2", "MTE3"):
            rate = ascend_costs.PIPES[pipe].bytes_per_cycle * figures["clock_hz"] * figures["aiv_cores"]
            assert rate > figures["dram_bytes_per_second"]
