# SPDX-License-Identifier: Apache-2.0
"""How fast a device moves bytes and computes: figures of a roofline, each with its source.

Rates are apart from the hardware model, which travels inside graphs and must be the same every day: some
rates are measured on the machine at hand.  A model whose own figures say a rate (`FIGURES`) is believed;
for the rest a kind of target may define, in its module of presets,

``RATES : Mapping[str, Callable[[HardwareModel], Rates]]``
    A maker per model; a model without one has unknown rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ..igraph.nodes import HardwareModel


@attrs.frozen
class Rate:
    """So many per second, over the whole device.

    Parameters
    ----------
    per_second : float or None
        None: not known.
    source : str
        Where the figure comes from, or why it is not known.
    """

    per_second: float | None
    source: str


UNKNOWN = Rate(None, "the hardware model has no figure for it")


@attrs.frozen
class MemoryRate:
    """One memory behind dram: a cache for kernels that touch up to ``capacity_bytes``, or (None) the rest.

    Parameters
    ----------
    name : str
        Of the memory.
    capacity_bytes : int or None
        What a kernel may touch to be served by it.
    known : Rate or callable
        Its rate, or what measures it: only those who ask for `rate` wait for that.
    """

    name: str
    capacity_bytes: int | None
    _known: Rate | Callable[[], Rate]

    @property
    def rate(self) -> Rate:
        """Bytes per second; measured now where it must be."""
        return self._known() if callable(self._known) else self._known


#: Vector instructions that one operation of a class takes, where a model says nothing else (`steps`).
#: add, mul, logic, convert: one.  divide: dividers of vectors deliver one result of 8 fp32 in 5 cycles (Intel
#: 64 Optimization Reference Manual, VDIVPS; AMD Family 19h guide: 5 to 6), while two additions start in
#: each.  transcendental: the polynomials of `uir_tvm.target.cpu.vector_math`: 5 to 8 steps of Horner, about
#: as many for the reduction of the argument, a few for clamping and scaling.
STEPS: Mapping[str, int] = {
    "add": 1,
    "mul": 1,
    "divide": 10,
    "transcendental": 20,
    "logic": 1,
    "convert": 1,
}


@attrs.frozen
class Rates:
    """The rates of one device.

    Attributes
    ----------
    operations : Rate
        Additions or multiplications of 4-byte words.
    contract : Rate
        Operations of contractions: a multiplication with an addition is two.
    memory : tuple of MemoryRate
        Bytes between units and dram, smallest capacity first; the last has no capacity.
    sram : Rate
        Bytes between units and sram.
    steps : mapping
        See `STEPS`.
    """

    operations: Rate = UNKNOWN
    contract: Rate = UNKNOWN
    memory: tuple[MemoryRate, ...] = (MemoryRate("dram", None, UNKNOWN),)
    sram: Rate = UNKNOWN
    steps: Mapping[str, int] = STEPS

    def memory_of(self, footprint: int) -> MemoryRate:
        """The first memory that serves a kernel that touches so many bytes."""
        for row in self.memory:
            if row.capacity_bytes is None or footprint <= row.capacity_bytes:
                return row
        return self.memory[-1]


#: Figure of a hardware model -> the rate that it states.
FIGURES: Mapping[str, str] = {
    "operations_per_second": "operations",
    "flops_per_second": "contract",
    "sram_bytes_per_second": "sram",
}
MEMORY_FIGURE = "dram_bytes_per_second"


def rates_of(model: HardwareModel) -> Rates:
    """The rates of a device; those of memories may be measured when they are first asked for.

    Parameters
    ----------
    model : HardwareModel
        As it stands in a graph; of a kind and name that the registry need not know.
    """
    from .hardware_models import rate_makers

    maker = rate_makers(str(model.kind)).get(str(model.name))
    rates = maker(model) if maker is not None else Rates()
    stated: dict[str, Any] = {
        field: _stated(model, figure) for figure, field in FIGURES.items() if figure in model.figures
    }
    if MEMORY_FIGURE in model.figures:
        stated["memory"] = (MemoryRate("dram", None, _stated(model, MEMORY_FIGURE)),)
    return attrs.evolve(rates, **stated)


def _stated(model: HardwareModel, figure: str) -> Rate:
    return Rate(float(model.figures[figure]), f"{figure} of the hardware model")
