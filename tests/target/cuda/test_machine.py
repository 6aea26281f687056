# SPDX-License-Identifier: Apache-2.0
"""The modelled GPU: blocks by registers and shared memory, transfers by the width of accesses."""

from __future__ import annotations

import attrs
import numpy as np
from uir_tvm import hardware
from uir_tvm.hardware.machine_model import GraphCounts
from uir_tvm.target.cuda.machine import machine

H200 = hardware.get("h200", "cuda")
SMS = int(H200.figures["sms"])
COUNTS = GraphCounts(
    units=1 << 16,
    groups=1 << 14,
    num_units=4,
    weights=np.ones(1),
    rows=(),
    held={"reg": 4096, "sram": 0},
    live={"reg": 4096, "sram": 0},
    parameters={},
    loops=0,
    vectors=1.0,
)


def test_transfers_are_as_fast_as_accesses_are_wide() -> None:
    wide, narrow = machine(H200, COUNTS), machine(H200, attrs.evolve(COUNTS, vectors=0.25))
    assert wide.load.rate == 4 * narrow.load.rate and wide.store.rate == 4 * narrow.store.rate
    assert wide.load.start == narrow.load.start and wide.onchip == narrow.onchip


def test_as_many_blocks_run_at_once_as_shared_memory_holds() -> None:
    room = int(H200.figures["sram_per_sm_bytes"])
    for blocks in (1, 2, 3):
        held = {"reg": 4096, "sram": room // blocks}
        assert machine(H200, attrs.evolve(COUNTS, held=held)).slots == SMS * blocks * COUNTS.num_units
    # more than there is: one at a time
    held = {"reg": 4096, "sram": room + 1}
    assert machine(H200, attrs.evolve(COUNTS, held=held)).slots == SMS * COUNTS.num_units


def test_as_many_blocks_run_at_once_as_registers_hold() -> None:
    few, many = ({"reg": size, "sram": 0} for size in (4096, 60000))
    assert machine(H200, attrs.evolve(COUNTS, live=many)).slots < machine(H200, COUNTS).slots
    assert machine(H200, attrs.evolve(COUNTS, live=few)).slots % (SMS * COUNTS.num_units) == 0
