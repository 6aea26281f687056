# SPDX-License-Identifier: Apache-2.0
"""How long a GPU takes, reckoned: as many blocks at once as registers and shared memory let."""

from __future__ import annotations

from ...hardware.machine_model import (
    CONTRACT,
    IRREGULAR,
    REDUCE,
    GraphCounts,
    IOpCounts,
    MachineModel,
    Pipe,
    figure,
    per_unit,
    rates,
)
from ...igraph.nodes import HardwareModel

# Orders of magnitude, by which schedules are compared before anything is measured; no measurements went in.
#: Seconds of a launch, of a load's way from dram, of a barrier, and of an instruction of a warp.
CUDA_LAUNCH, CUDA_LATENCY, CUDA_BARRIER, CUDA_ISSUE = 2.5e-6, 6e-7, 3e-8, 1e-8
#: Of the memory's rate, what kernels reach; what a warp alone does by its widest accesses, bytes a second.
CUDA_REACHED, CUDA_WARP = 0.9, 4e10


def machine(hw: HardwareModel, counts: GraphCounts) -> MachineModel:
    """The machine of a hardware model, as a graph uses it."""
    sms = int(figure(hw, "sms", hw.num_groups))
    warps = int(figure(hw, "warps_per_sm", 64))
    registers = figure(hw, "registers_per_sm", 65536) * 4
    by_registers = int(registers // max(counts.live["reg"] + 4096, 8192))
    blocks = max(min(warps, by_registers) // counts.num_units, 1)
    if counts.held["sram"]:
        blocks = max(min(blocks, int(figure(hw, "sram_per_sm_bytes", 1e5) // counts.held["sram"])), 1)
    slots = sms * blocks * counts.num_units
    active = min(slots, counts.units)
    words, contract, memory = per_unit(hw, max(active, sms * 4))
    known = rates(hw)
    shared = (known.sram.per_second or 1e13) / max(active, 1)
    steps = known.steps

    def vector(row: IOpCounts) -> tuple[float, float]:
        if row.category == CONTRACT:
            return 2 / contract, CUDA_ISSUE
        if row.category == REDUCE:
            return 2 * row.words / words, 10 * CUDA_ISSUE
        if row.category == IRREGULAR:
            return 4 * row.words / words, 4 * CUDA_ISSUE
        return row.words * steps.get(row.kind, 1) / words, CUDA_ISSUE

    return MachineModel(
        CUDA_LAUNCH,
        slots,
        Pipe(CUDA_WARP * counts.vectors, CUDA_LATENCY),
        Pipe(CUDA_WARP * counts.vectors, CUDA_ISSUE),
        Pipe(shared, 3 * CUDA_ISSUE),
        memory * CUDA_REACHED,
        vector,
        cached=4 * memory / max(active, 1),
        cache_bytes=int(figure(hw, "l2_bytes", 0)),
        sync=CUDA_BARRIER,
        pipes=False,
        words=words,
    )
