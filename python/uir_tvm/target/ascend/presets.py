# SPDX-License-Identifier: Apache-2.0
"""Ascend 910B: a unit is a vector core, reg its unified buffer (UB); there are no groups and no sram.

``num_groups`` is the number of vector cores: a kernel has at most so many blocks, which all run at once.
``reg_bytes`` is what a kernel may plan for of the UB: the rest is the toolkit's.  ``vector_bytes`` is one
repeat of a vector instruction.  Cube cores take part in contractions only.

Figures
-------
arch
    The instruction set as the toolkit names it.
aiv_cores, aic_cores
    Vector and cube cores of the device.
ub_bytes, l1_bytes, l0a_bytes, l0b_bytes, l0c_bytes
    Memories of one vector core, and of one cube core.
product_level
    Where cube cores read operands and leave products: of all memories only global memory is both theirs and
    the vector cores' (pass `matrix_unit`).
reg_align, row_align_bytes
    Addresses in the UB, and starts of the rows of a tile there: blocks of 32 bytes.
l2_bytes, dram_bytes
    Second-level cache and global memory (HBM) of the device.
line_bytes
    Where a transfer should start in global memory.
spread_fp16, spread_fp32
    Binary functions that take an operand with one block for all columns of a row, or one row for all rows, by
    strides of zero (of fp16 those that are computed in fp16).
tile_bytes
    Of the UB what a tile should take, with all places of what is loaded and stored; the rest is for scalars
    of rows and for work buffers.
transfer_bytes
    Least size of one transfer that reaches the full bandwidth.
clock_hz
    Of all cores.
dram_bytes_per_second
    The bandwidth of global memory, shared by all cores.

Sources
-------
910B1: the toolkit's platform file (``Ascend910B1.ini``): cores, memories, clock, rates per core; usable UB,
sizes and addresses of transfers: Ascend C operator development guide ("Data transfer": at least 16 KB from
512-byte addresses).  910B2 to B4: the same chip with fewer cores, another clock or memory, as system vendors
and published measurements state them.  What a vector instruction costs: `uir_tvm.target.ascend.costs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from ...hardware.rates import Rate, Rates
from ...igraph.nodes import HardwareModel

KIB = 1024
MIB = 1024 * 1024
GIB = 1024 * 1024 * 1024
GB = 10**9

DEFAULT = "910b2"

#: Bytes of a block of the UB, to which everything there is aligned; of one repeat of a vector instruction.
BLOCK_BYTES, REPEAT_BYTES = 32, 256
#: The UB of a vector core, and how much of it a kernel may use; the toolkit reserves the rest.
UB_BYTES, USABLE_UB_BYTES = 192 * KIB, 188_160
#: Memories of a cube core.
L1_BYTES, L0A_BYTES, L0B_BYTES, L0C_BYTES = 512 * KIB, 64 * KIB, 64 * KIB, 128 * KIB
#: Operations of a cube core in a cycle: 16 x 16 x 16 multiplications of fp16 with additions.
CUBE_OPERATIONS = 2 * 16 * 16 * 16


@attrs.frozen
class DataSheet:
    """One product: cores, memory (bytes, bytes per second) and clock."""

    name: str
    aic_cores: int
    l2_bytes: int
    dram_bytes: int
    dram_rate: int
    clock_hz: int
    source: str

    @property
    def aiv_cores(self) -> int:
        """Vector cores: two beside every cube core."""
        return 2 * self.aic_cores


_MHZ = 10**6
DEVICES: Mapping[str, DataSheet] = {
    row.name: row
    for row in (
        DataSheet("910b1", 24, 192 * MIB, 64 * GIB, 1600 * GB, 1850 * _MHZ, "platform file, bandwidth as B2"),
        DataSheet("910b2", 24, 192 * MIB, 64 * GIB, 1600 * GB, 1800 * _MHZ, "system vendors"),
        DataSheet("910b3", 20, 192 * MIB, 64 * GIB, 1600 * GB, 1800 * _MHZ, "system vendors"),
        DataSheet("910b4", 20, 96 * MIB, 32 * GIB, 800 * GB, 1500 * _MHZ, "system vendors"),
    )
}


def ascend_model(device: DataSheet) -> HardwareModel:
    """The hardware model of a device's vector cores."""
    figures = {
        "arch": "dav-2201",
        "aiv_cores": device.aiv_cores,
        "aic_cores": device.aic_cores,
        "ub_bytes": UB_BYTES,
        "l1_bytes": L1_BYTES,
        "l0a_bytes": L0A_BYTES,
        "l0b_bytes": L0B_BYTES,
        "l0c_bytes": L0C_BYTES,
        "product_level": "dram",
        "reg_align": BLOCK_BYTES,
        "row_align_bytes": BLOCK_BYTES,
        "l2_bytes": device.l2_bytes,
        "dram_bytes": device.dram_bytes,
        "line_bytes": 512,
        "spread_fp16": "add sub mul max min",
        "spread_fp32": "add sub mul div max min",
        "tile_bytes": 160 * KIB,
        "transfer_bytes": 16 * KIB,
        "clock_hz": float(device.clock_hz),
        "dram_bytes_per_second": float(device.dram_rate),
    }
    return HardwareModel(
        device.name, "ascend", device.aiv_cores, 1, USABLE_UB_BYTES, 0, REPEAT_BYTES, figures
    )


#: Time of one operation of a class over that of an fp32 addition (k of `costs.VECTOR`); a
#: transcendental function is taken to be Exp, which most are made of; Tanh is 8 times, Erf 30 times as long.
STEPS: Mapping[str, int] = {"add": 1, "mul": 1, "divide": 2, "transcendental": 2, "logic": 1, "convert": 1}


def _rates(device: DataSheet) -> Callable[[HardwareModel], Rates]:
    def rates(model: HardwareModel) -> Rates:
        clock = f"{device.clock_hz / 1e9} GHz ({device.source})"
        lanes = REPEAT_BYTES // 4
        return Rates(
            operations=Rate(
                device.aiv_cores * lanes * device.clock_hz,
                f"{device.aiv_cores} vector cores x {lanes} fp32 a cycle x {clock}",
            ),
            contract=Rate(
                device.aic_cores * CUBE_OPERATIONS * device.clock_hz,
                f"{device.aic_cores} cube cores x {CUBE_OPERATIONS} fp16 operations a cycle x {clock}",
            ),
            steps=STEPS,
        )

    return rates


def _maker(device: DataSheet) -> Callable[[], HardwareModel]:
    return lambda: ascend_model(device)


PRESETS: Mapping[str, Callable[[], HardwareModel]] = {name: _maker(row) for name, row in DEVICES.items()}
RATES: Mapping[str, Callable[[HardwareModel], Rates]] = {name: _rates(row) for name, row in DEVICES.items()}
