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
from ..target_facts import Facts


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


#: Kind of hardware -> its library (`uir_tvm.target.record`).
LIBRARIES: Mapping[str, LibraryCost] = Facts("library_cost")


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
