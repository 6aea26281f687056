# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: a unit is a warp, a group a thread block, sram its shared memory, reg its registers.

``num_groups`` is the number of multiprocessors: so many blocks at least keep every one of them busy; a grid
may have more.  ``num_units`` is the most warps of a block.  ``reg_bytes`` is what a warp may hold in slices:
a thread has at most 255 registers of 4 bytes, of which `RESERVED` serve addresses, loop variables and the
intermediate results of an iOp.  A block of many warps has less: the multiprocessor's registers are shared
out.  ``sram_bytes`` is the dynamic shared memory that a block may ask for by opting in.  ``vector_bytes`` is
one instruction of a warp: 16 bytes a lane.

Figures
-------
arch
    As nvcc names it; decides which instructions may be printed.
sms, warps_per_sm, registers_per_sm, sram_per_sm_bytes
    Multiprocessors of the device; what one of them holds at a time.
l2_bytes, dram_bytes
    Second-level cache and global memory of the device.
line_bytes
    What one coalesced access of a warp should fill; what two blocks write should not share one.
tile_bytes
    Preferred size of a unit's tile, over all its live slices: 64 registers a lane.  With as many around
    it a multiprocessor has room for sixteen warps at once, which hide the latency of one another's loads.
group_units
    Warps of a block where nothing asks for more: enough for a multiprocessor to fill up with blocks, few
    enough that a barrier stops little.
sram_align
    Bytes to which a slice in shared memory is aligned: the widest access of a lane.
dram_bytes_per_second
    The bandwidth of global memory on the data sheet.

Sources
-------
Limits by compute capability: CUDA C++ Programming Guide, table "Technical Specifications per Compute
Capability" (8.0, 8.9, 9.0).  Devices: NVIDIA A100 Tensor Core GPU Architecture (white paper) and A100 80GB
data sheet; NVIDIA Ada GPU Architecture (white paper) and L40S data sheet; NVIDIA H100 Tensor Core GPU
Architecture (white paper) and H100 data sheet; H200 data sheet (the die of H100 with other memory).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from ...hardware.rates import Rate, Rates
from ...igraph.nodes import HardwareModel

KIB = 1024
MIB = 1024 * 1024
GB = 10**9
TERA = 10**12

DEFAULT = "h200"

#: Lanes of a warp, and warps of the largest block (1024 threads), of every compute capability.
LANES, MAX_UNITS = 32, 32
#: Registers of a thread that its instructions can name, and those of them that hold no slice.
MAX_REGISTERS, RESERVED = 255, 63
#: Registers of a multiprocessor, of every compute capability from 5.0 on.
REGISTERS_PER_SM = 64 * 1024
#: The widest access of a lane, and the bytes that a warp's access to one row of sectors fills.
LANE_BYTES, LINE_BYTES = 16, 128


@attrs.frozen
class Capability:
    """What a compute capability limits: warps and shared memory of a multiprocessor, then of a block."""

    arch: str
    warps_per_sm: int
    sram_per_sm: int
    sram_per_block: int


#: sm_90a is capability 9.0 with the instructions that only it has (wgmma).
CAPABILITIES: Mapping[str, Capability] = {
    row.arch: row
    for row in (
        Capability("sm_80", 64, 164 * KIB, 163 * KIB),
        Capability("sm_89", 48, 100 * KIB, 99 * KIB),
        Capability("sm_90a", 64, 228 * KIB, 227 * KIB),
    )
}


@attrs.frozen
class DataSheet:
    """One product: its size, and the data sheet's rates (bytes per second, TFLOP/s, GHz)."""

    name: str
    arch: str
    sms: int
    l2_bytes: int
    dram_bytes: int
    dram_rate: int
    fp32_tflops: float
    tensor_tflops: float
    boost_ghz: float
    sheet: str


DEVICES: Mapping[str, DataSheet] = {
    row.name: row
    for row in (
        DataSheet("a100", "sm_80", 108, 40 * MIB, 80 * GB, 2039 * GB, 19.5, 312, 1.410, "A100 SXM 80GB"),
        DataSheet("l40s", "sm_89", 142, 96 * MIB, 48 * GB, 864 * GB, 91.6, 362, 2.520, "L40S"),
        DataSheet("h100", "sm_90a", 132, 50 * MIB, 80 * GB, 3350 * GB, 67, 989, 1.980, "H100 SXM"),
        DataSheet("h200", "sm_90a", 132, 50 * MIB, 141 * GB, 4800 * GB, 67, 989, 1.980, "H200 SXM"),
    )
}


def cuda_model(device: DataSheet) -> HardwareModel:
    """The hardware model of a device."""
    limits = CAPABILITIES[device.arch]
    figures = {
        "arch": device.arch,
        "sms": device.sms,
        "warps_per_sm": limits.warps_per_sm,
        "registers_per_sm": REGISTERS_PER_SM,
        "sram_per_sm_bytes": limits.sram_per_sm,
        "l2_bytes": device.l2_bytes,
        "dram_bytes": device.dram_bytes,
        "line_bytes": LINE_BYTES,
        "tile_bytes": 64 * 4 * LANES,
        "group_units": 4,
        "sram_align": LANE_BYTES,
        "dram_bytes_per_second": float(device.dram_rate),
    }
    return HardwareModel(
        device.name,
        "cuda",
        device.sms,
        MAX_UNITS,
        (MAX_REGISTERS - RESERVED) * 4 * LANES,
        limits.sram_per_block,
        LANE_BYTES * LANES,
        figures,
    )


#: Instructions of a lane for one operation of a class, in units of the time of an fp32 addition: CUDA C++
#: Programming Guide, table "Throughput of Native Arithmetic Instructions" for 8.x and 9.0: 128 additions a
#: cycle and multiprocessor, 64 comparisons and logic operations, 16 of the special function unit.  A division
#: is a reciprocal with two steps of refinement; a transcendental function the special function with some
#: steps around it.
STEPS: Mapping[str, int] = {"add": 1, "mul": 1, "divide": 12, "transcendental": 12, "logic": 2, "convert": 4}

#: Bytes a cycle of a multiprocessor's shared memory: 32 banks of 4 bytes (same guide, "Shared Memory").
SRAM_BYTES_PER_CYCLE = 128


def _rates(device: DataSheet) -> Callable[[HardwareModel], Rates]:
    def rates(model: HardwareModel) -> Rates:
        sheet = f"data sheet of the {device.sheet}"
        shared = SRAM_BYTES_PER_CYCLE * device.sms * device.boost_ghz * 1e9
        said = f"{device.sms} multiprocessors x {SRAM_BYTES_PER_CYCLE} bytes x {device.boost_ghz} GHz (boost)"
        return Rates(
            operations=Rate(device.fp32_tflops * TERA / 2, f"{sheet}: fp32, where a fused step counts twice"),
            contract=Rate(device.tensor_tflops * TERA, f"{sheet}: fp16 on tensor cores, dense"),
            sram=Rate(shared, said),
            steps=STEPS,
        )

    return rates


def _maker(device: DataSheet) -> Callable[[], HardwareModel]:
    return lambda: cuda_model(device)


PRESETS: Mapping[str, Callable[[], HardwareModel]] = {name: _maker(row) for name, row in DEVICES.items()}
RATES: Mapping[str, Callable[[HardwareModel], Rates]] = {name: _rates(row) for name, row in DEVICES.items()}
