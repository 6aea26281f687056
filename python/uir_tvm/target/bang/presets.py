# SPDX-License-Identifier: Apache-2.0
"""Cambricon MLU: a unit is an IPU core, reg its NRAM; a group is a cluster of four cores, sram its SRAM.

``num_groups`` is the number of clusters and ``num_units`` the cores of one.  A kernel either has groups of
one unit each (a Block launch: any core takes any group, up to all cores at once; no SRAM) or groups of four
(a Union1 launch).  ``reg_bytes`` and ``sram_bytes`` are what a kernel may plan for of NRAM and SRAM: the rest
is the compiler's.  ``vector_bytes`` is what a vector instruction takes in a cycle.

Figures
-------
arch
    The architecture as the compiler's option and its macro ``__BANG_ARCH__`` number it.
clusters, cores_per_cluster, cores
    Of the device.  One device of the MLU370-X8, a card of two, is one chip.
nram_bytes, wram_bytes, sram_bytes
    Memories of a core (vectors; right operands of products) and of a cluster, whole.
reserve_bytes
    Of NRAM, and of SRAM, what kernels leave to the compiler (its stack).
reg_align, sram_align
    Addresses of pointers: whole cycles of a vector instruction.
group_units
    Units of a group where nothing asks for more: a core that nobody waits for.
sram_units
    Units of a group that has SRAM: those of a whole cluster.
dram_bytes
    Global memory of the device (GDRAM).
line_bytes
    Where a transfer should start in global memory, and what rows of tiles are multiples of: one cycle of a
    vector instruction, two accesses of the memory (64 bytes; a shorter write reads first).
tile_bytes
    Of NRAM what a tile should take, with all places of what is loaded and stored; the rest is for scalars of
    rows and for work buffers.
late_stores
    1: stores of a pipelined loop run an iteration behind, since a core waits for all that a pipe was given.
move_stages
    1: copies between SRAM and NRAM have stages of their own in pipelined loops: they run beside all else.
group_reduce_cycles
    What a reduction over the cores of a cluster costs each of them, with the way back of its result, beyond
    that of their own parts: meetings, and copies to and from SRAM.  Of the host model's times.
segment_cycles
    What each further segment of a strided transfer costs (`uir_tvm.target.bang.costs`).
transfer_bytes
    Least size of one transfer that reaches the full bandwidth.
clock_hz
    Of all cores.
dram_bytes_per_second, cluster_bytes_per_second
    Bandwidth of global memory, shared by all clusters, and what one cluster gets of it at most.
vector_bytes_per_cycle
    What a vector instruction of a core works on in a cycle.
matmul_f16, matmul_f32
    Operations of a core's matrix unit in a cycle; an addition and a multiplication are two.
unknown
    Names of figures that no public source states.  They hold careful defaults: what is printed is right
    whatever the device has, but tiles and modelled times are of the default.

Sources
-------
arch, memories: ``__MLU_NRAM_SIZE__`` and its like of the compiler's headers; the reserve, vectors, the matrix
unit, the memory's bandwidth and a cluster's: Cambricon's mlu-ops (``kernels/kernel.h``, ``REM_FOR_STACK``;
``test/mlu_op_gtest/pb_gtest/include/executor.h``).  Clocks of MLU370, clusters of the MLU370-X8, sizes of
accesses: the BANG C operator guide of mlu-ops, section 5.3.  Clusters of the MLU370-X4: its rate of int8
products on the product page (256 TOPS) over that of a core.  Memory: product pages of MLU370.  MLU590: its
bandwidth was measured by third parties (1.2 TB/s at least).  ``transfer_bytes`` is an assumption for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from ...hardware.rates import Rate, Rates
from ...igraph.nodes import HardwareModel

KIB = 1024
GIB = 1024 * 1024 * 1024
GB = 10**9
_MHZ = 10**6

DEFAULT = "mlu370-x8"

#: Cores of a cluster, of every architecture here.
CORES = 4
#: What kernels leave of NRAM and of SRAM to the compiler.
RESERVE_BYTES = 128 * KIB
#: Bytes that a vector instruction takes in a cycle.
VECTOR_BYTES = 128
#: Operations of a core's matrix unit in a cycle (MLU370).
MATMUL_F16, MATMUL_F32 = 3072, 768


@attrs.frozen
class Architecture:
    """Memories by architecture, in bytes, and of NRAM what a tile should take."""

    number: int
    nram: int
    wram: int
    sram: int
    tile: int


ARCHITECTURES: Mapping[int, Architecture] = {
    row.number: row
    for row in (
        Architecture(372, 768 * KIB, 1024 * KIB, 4096 * KIB, 512 * KIB),
        Architecture(592, 512 * KIB, 512 * KIB, 2048 * KIB, 304 * KIB),
    )
}


@attrs.frozen
class DataSheet:
    """One product: clusters, memory (bytes, bytes per second in all and of a cluster) and clock.

    ``unknown`` are the figures of it that no public source states.
    """

    name: str
    arch: int
    clusters: int
    dram_bytes: int
    dram_rate: int
    cluster_rate: int
    clock_hz: int
    unknown: tuple[str, ...]
    source: str

    @property
    def cores(self) -> int:
        """IPU cores of all clusters."""
        return CORES * self.clusters


#: Bytes per second of an MLU370's memory.
RATE_370 = 307_200_000_000
#: The MLU590's clusters, clock and shares are not published: the default is the chip of the MLU370-X4 with
#: the memory's measured rate.
_590 = ("clusters", "clock_hz", "dram_bytes", "cluster_bytes_per_second", "matmul_f16", "matmul_f32")
DEVICES: Mapping[str, DataSheet] = {
    row.name: row
    for row in (
        DataSheet("mlu370-x4", 372, 8, 24 * GIB, RATE_370, 128 * GB, 1000 * _MHZ, (), "product page, guide"),
        DataSheet("mlu370-x8", 372, 4, 24 * GIB, RATE_370, 128 * GB, 1300 * _MHZ, (), "product page, guide"),
        DataSheet("mlu590", 592, 8, 32 * GIB, 1200 * GB, 150 * GB, 1000 * _MHZ, _590, "measured bandwidth"),
    )
}


def bang_model(device: DataSheet) -> HardwareModel:
    """The hardware model of a device."""
    arch = ARCHITECTURES[device.arch]
    figures = {
        "arch": str(device.arch),
        "clusters": device.clusters,
        "cores_per_cluster": CORES,
        "cores": device.cores,
        "nram_bytes": arch.nram,
        "wram_bytes": arch.wram,
        "sram_bytes": arch.sram,
        "reserve_bytes": RESERVE_BYTES,
        "reg_align": VECTOR_BYTES,
        "sram_align": VECTOR_BYTES,
        "group_units": 1,
        "sram_units": CORES,
        "dram_bytes": device.dram_bytes,
        "line_bytes": VECTOR_BYTES,
        "spread_col_fp32": "add mul",
        "tile_bytes": arch.tile,
        "late_stores": 1,
        "move_stages": 1,
        "group_reduce_cycles": 700,
        "segment_cycles": 2,
        "transfer_bytes": 16 * KIB,
        "clock_hz": float(device.clock_hz),
        "dram_bytes_per_second": float(device.dram_rate),
        "cluster_bytes_per_second": float(device.cluster_rate),
        "vector_bytes_per_cycle": VECTOR_BYTES,
        "matmul_f16": MATMUL_F16,
        "matmul_f32": MATMUL_F32,
        "unknown": ["transfer_bytes", *device.unknown],
    }
    nram, sram = arch.nram - RESERVE_BYTES, arch.sram - RESERVE_BYTES
    return HardwareModel(device.name, "bang", device.clusters, CORES, nram, sram, VECTOR_BYTES, figures)


#: Time of one operation of a class over that of an fp32 addition; a division is a reciprocal with a product,
#: a transcendental function a power of two with what keeps its argument and result exact.
STEPS: Mapping[str, int] = {"add": 1, "mul": 1, "divide": 5, "transcendental": 20, "logic": 1, "convert": 1}


def _rates(device: DataSheet) -> Callable[[HardwareModel], Rates]:
    def rates(model: HardwareModel) -> Rates:
        cores = f"{device.cores} cores"
        clock = f"{device.clock_hz / 1e9} GHz ({device.source})"
        if "clock_hz" in device.unknown:
            clock += ", assumed: cores and clock are not published"
        lanes = VECTOR_BYTES // 4
        return Rates(
            operations=Rate(
                device.cores * lanes * device.clock_hz,
                f"{cores} x {lanes} fp32 a cycle x {clock}",
            ),
            contract=Rate(
                device.cores * MATMUL_F16 * device.clock_hz,
                f"{cores} x {MATMUL_F16} fp16 operations a cycle x {clock}",
            ),
            steps=STEPS,
        )

    return rates


def _maker(device: DataSheet) -> Callable[[], HardwareModel]:
    return lambda: bang_model(device)


PRESETS: Mapping[str, Callable[[], HardwareModel]] = {name: _maker(row) for name, row in DEVICES.items()}
RATES: Mapping[str, Callable[[HardwareModel], Rates]] = {name: _rates(row) for name, row in DEVICES.items()}
