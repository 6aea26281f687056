# SPDX-License-Identifier: Apache-2.0
"""What operators of the vendor's library take on a device, as data: a roofline of the device and a start.

The library cannot be run without the device, and its authors publish no model of it.  An operator is
therefore taken to need the longer of

    operations / (cores * operations a cycle * clock * `LibraryCost.arithmetic_share`)
    bytes / (bandwidth of global memory * `LibraryCost.memory_share`)

where every element of an operand is read once and every element of the result is written once, and
`LibraryCost.start_cycles` on top, as any kernel does.  Nothing is rounded up to tiles or to rounds of cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ..igraph.nodes import HardwareModel
from . import ascend_costs, bang_costs


@attrs.frozen
class LibraryCost:
    """The library of one kind of device.

    Attributes
    ----------
    cores : str
        Figure of the hardware model: cores that multiply matrices.
    operations : mapping of str to int
        Element type -> operations of one core in a cycle; a multiplication with an addition is two.
    start_cycles, start_cycles_per_core : float
        Of every call.
    arithmetic_share, memory_share : float
        Part of the full rates that the library reaches.
    source : str
        Where the figures come from; what is assumed is called so.
    """

    cores: str
    operations: Mapping[str, int]
    start_cycles: float
    start_cycles_per_core: float
    arithmetic_share: float
    memory_share: float
    source: str


_LOAD, _STORE = ascend_costs.PIPES["MTE2"], ascend_costs.PIPES["MTE3"]

#: Kind of hardware -> its library.
LIBRARIES: Mapping[str, LibraryCost] = {
    "ascend": LibraryCost(
        cores="aic_cores",
        operations={"float16": 8192, "bfloat16": 8192, "float32": 2048, "int8": 16384},
        start_cycles=ascend_costs.KERNEL_CYCLES + _LOAD.head + _STORE.head,
        start_cycles_per_core=_LOAD.head_per_block,
        arithmetic_share=0.8,
        memory_share=1.0,
        source="a cube core multiplies blocks of 16 x 16 x 32 bytes, one in a cycle, of fp32 in two cycles; "
        "start: what our kernels take before their first and last transfer (ascend_costs); shares: assumed, "
        "0.8 of the cube's rate and the whole bandwidth",
    ),
    "bang": LibraryCost(
        cores="cores",
        operations={"float16": 3072, "float32": 768},
        start_cycles=bang_costs.KERNEL_CYCLES + bang_costs.PIPES["IO"].head,
        start_cycles_per_core=0.0,
        arithmetic_share=0.8,
        memory_share=1.0,
        source="operations of a core in a cycle: Cambricon's mlu-ops (executor.h of its tests, MLU370); "
        "start: what our kernels take before their first transfer (bang_costs); shares: assumed, 0.8 of the "
        "rate and the whole bandwidth",
    ),
}


@attrs.frozen
class LibraryTime:
    """What one call takes: all of it, its arithmetic alone, its bytes alone; and the bytes."""

    seconds: float
    arithmetic_seconds: float
    memory_seconds: float
    bytes: int

    @property
    def bound(self) -> str:
        """The pipe of the matrix cores, or the memory."""
        return "M" if self.arithmetic_seconds > self.memory_seconds else "memory"

    def to_note(self) -> dict[str, Any]:
        """As the host model notes a launch of our own kernels."""
        pipes = {
            "M": {"busy_seconds": self.arithmetic_seconds, "instructions": 0, "bytes": 0},
            "memory": {"busy_seconds": self.memory_seconds, "instructions": 0, "bytes": self.bytes},
        }
        return {"seconds": self.seconds, "bound": self.bound, "pipes": pipes}


def library_time(hardware: HardwareModel, dtype: str, operations: int, nbytes: int) -> LibraryTime | None:
    """The modelled time of one operator of the library.

    Parameters
    ----------
    hardware : HardwareModel
        Its figures and its kind choose the rates.
    dtype : str
        Element type of the operands, as TVM names it.
    operations, nbytes : int
        Of the whole operator.

    Returns
    -------
    LibraryTime or None
        None where nothing is known of the library of this kind of hardware, or of this type.
    """
    cost = LIBRARIES.get(str(hardware.kind))
    if cost is None or dtype not in cost.operations:
        return None
    figures = hardware.figures
    cores, clock = float(figures[cost.cores]), float(figures["clock_hz"])
    arithmetic = operations / (cores * cost.operations[dtype] * clock * cost.arithmetic_share)
    memory = nbytes / (float(figures["dram_bytes_per_second"]) * cost.memory_share)
    start = (cost.start_cycles + cost.start_cycles_per_core * cores) / clock
    return LibraryTime(start + max(arithmetic, memory), arithmetic, memory, nbytes)
