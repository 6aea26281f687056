# SPDX-License-Identifier: Apache-2.0
"""Costs of MLU instructions: plain data, in proportion to what the hardware's figures say."""

from __future__ import annotations

import json

import pytest
from uir_tvm import hardware
from uir_tvm.target.bang import costs as bang_costs


def test_data_survives_json() -> None:
    data = bang_costs.as_data()
    assert json.loads(json.dumps(data)) == data
    assert set(data["pipes"]) == {"IO", "MOVE", "COMPUTE", "S"}
    assert min(data["passes"].values()) >= 1, "no function is faster than its pipe"


@pytest.mark.parametrize("name", hardware.names("bang"))
def test_one_direction_of_all_cores_reaches_the_memory(name: str) -> None:
    """The device's bandwidth is what binds when all cores load, and a core takes less than its cluster."""
    model = hardware.get(name, "bang")
    f = model.figures
    core = bang_costs.PIPES["IO"].bytes_per_cycle * f["clock_hz"]
    assert core * model.num_groups * model.num_units > f["dram_bytes_per_second"]
    assert core < f["cluster_bytes_per_second"] < core * model.num_units
    assert f["cluster_bytes_per_second"] * model.num_groups >= f["dram_bytes_per_second"]
