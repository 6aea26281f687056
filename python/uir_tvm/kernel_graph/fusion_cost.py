# SPDX-License-Identifier: Apache-2.0
"""What candidates of fusion cost: the time of the kernels either way, by the model of the hardware.

Most neighbours are better as one kernel whatever the hardware: one kernel moves fewer bytes and does nothing
more.  A price decides where it is a trade:

`REPEATED`    a value is computed once for each time that a view repeats it, or once in a kernel of its own
`FEW_ROWS`    an operator runs inside a kernel of few rows, which keep few units busy, or on all units
`RECOMPUTED`  every kernel that reads a value computes it for itself, or one kernel writes it for all
`SIBLINGS`    two kernels that read the same tensor over one space, and not each other, are one or two

The time of a kernel is a roofline: the longer of what it moves and what it computes, and what its start
takes.  Bytes come from dram, or from a cache where one holds them; a kernel of few rows has few units.  All
figures are of the target (`uir_tvm.target.record`: ``machine``) and of its rates' ``steps``; nothing is
measured while a model compiles, so that the same model has the same kernels every day.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from ..hardware.machine_model import GraphCounts, MachineModel, figure, rates
from ..igraph.nodes import HardwareModel
from ..options import FUSIONS
from ..sizes.open_arithmetic import representative
from ..target.registry import machine_of
from .nodes import FusionDecision, Price
from .operator_groups import IterationSpace, OperatorGroup
from .operator_traffic import reads_of_kernel
from .program import Op, Value, dtype_bytes

REPEATED, FEW_ROWS, RECOMPUTED, SIBLINGS = "repeated", "few rows", "recomputed", "siblings"
#: What the rule would do is left only for a tenth: what the model leaves out is against it.
LEAST_GAIN = 0.9
#: A kernel may count on half of a cache (as `Rates.memory_of` does), and between the kernels of a model lie
#: others; machines take half of what a graph's tensors have for what it touches, of calls in a row.
CROWDED = 4
#: Bytes of a word, which operations are counted in: narrower types are computed in words.
WORD = 4


@frozen(eq=False)
class KernelWork:
    """What one kernel does.

    Attributes
    ----------
    reads, writes : mapping of Value to int
        Bytes of each buffer.
    operations : float
        Plain operations of words; a division or an exponential is as many as the target's `Rates.steps` say.
    units : int
        Units that can share the work.
    """

    reads: Mapping[Value, int] = field(repr=False)
    writes: Mapping[Value, int] = field(repr=False)
    operations: float
    units: int

    @property
    def bytes(self) -> int:
        """All that it moves."""
        return sum(self.reads.values()) + sum(self.writes.values())


class FusionCost:
    """The prices of one hardware model.

    Parameters
    ----------
    hardware : HardwareModel
    fusion : str
        Who decides (`uir_tvm.options.FUSIONS`): the price, or all candidates are merged, or stay apart.
    """

    def __init__(self, hardware: HardwareModel, fusion: str = FUSIONS[0]) -> None:
        self.hardware = hardware
        self.fusion = fusion
        #: Plain operations that one of a class of arithmetic is.
        self.steps = rates(hardware).steps
        self._machines: dict[tuple[int, int], MachineModel] = {}
        self._shared = int(hardware.num_units) if int(hardware.sram_bytes) else 1
        self._lanes = max(int(hardware.vector_bytes) // WORD, 1)
        self._group = int(figure(hardware, "group_units", int(hardware.num_units)))
        self._all = self._machine(1 << 20, 0).slots

    @property
    def all_units(self) -> int:
        """Units that run at the same time."""
        return self._all

    def units(self, space: IterationSpace) -> int:
        """How many units the work in a space can keep busy: its rows, or its vectors."""
        if space.axes:
            return min(_number(space.row_shape) * self._shared, self._all)
        return max(min(-(-_number(space.shape) // self._lanes), self._all), 1)

    def loses_units(self, space: IterationSpace) -> bool:
        """Whether rows keep fewer units busy than single elements would."""
        return bool(space.axes) and self.units(space) < self.units(IterationSpace(space.shape))

    def work(
        self,
        group: OperatorGroup,
        written: Iterable[Value],
        more: Sequence[Op] = (),
        times: Mapping[Op, int] | None = None,
    ) -> KernelWork:
        """What a group does as one kernel.

        Parameters
        ----------
        group : OperatorGroup
        written : iterable of Value
            Its results that are needed outside.
        more : sequence of Op
            Operators that would join it.
        times : mapping of Op to int, optional
            How many elements an operator computes, where it is not what its result has.
        """
        ops = [*group.ops, *more]
        writes = {value: representative(value.nbytes) for value in written}
        operations = sum(self._operations(op, (times or {}).get(op)) for op in ops)
        reads = reads_of_kernel(ops, representative)
        return KernelWork(reads, writes, operations, max(self.units(group.space), 1))

    def _operations(self, op: Op, elements: int | None) -> float:
        if elements is None:
            over = op.operands[0].shape if op.kind.kind == "reduction" else op.shape
            elements = _number(over)
        words = max(dtype_bytes(op.results[0].dtype), WORD) / WORD
        return elements * words * sum(self.steps[each] for each in op.kind.work)

    def price(self, kernels: Sequence[KernelWork]) -> Price:
        """The time of kernels one after the other, and what it comes of."""
        touched: dict[Value, int] = {}
        seconds = 0.0
        for kernel in kernels:
            again = sum(size for value, size in kernel.reads.items() if value in touched)
            touched |= {**kernel.reads, **kernel.writes}
            seconds += self._seconds(kernel, again, sum(touched.values()))
        return Price(
            seconds,
            sum(kernel.bytes for kernel in kernels),
            int(sum(kernel.operations for kernel in kernels)),
            min(kernel.units for kernel in kernels),
        )

    def _seconds(self, kernel: KernelWork, again: int, touched: int) -> float:
        """The least over one unit, which starts soonest, and all that have work."""
        return min(self._on(units, kernel, again, touched) for units in {1, kernel.units})

    def _on(self, units: int, kernel: KernelWork, again: int, touched: int) -> float:
        """On so many units; ``again`` bytes of its reads were touched before, ``touched`` are all by now."""
        machine = self._machine(units, kernel.bytes)
        active = min(units, machine.slots)
        cached = again if machine.cached and touched <= machine.cache_bytes else 0
        share = machine.share(active)
        load = (sum(kernel.reads.values()) - cached) / min(machine.load.rate, share)
        load += cached / machine.cached if cached else 0.0
        store = sum(kernel.writes.values()) / min(machine.store.rate, share)
        moved = max(load, store, (kernel.bytes - cached) / share) if machine.pipes else load + store
        busy = max(moved, kernel.operations / machine.words) / active
        return machine.launch + machine.load.head + machine.store.head + busy

    def _machine(self, units: int, nbytes: int) -> MachineModel:
        """The machine as a kernel of so many units finds it that touches so many bytes."""
        key = units, nbytes
        if key not in self._machines:
            group = max(min(self._group, units), 1)
            held = {"reg": 0, "sram": 0}
            counts = GraphCounts(
                units,
                -(-units // group),
                group,
                np.ones(1),
                (),
                held,
                held,
                {"all": CROWDED * nbytes},
                0,
                1.0,
            )
            self._machines[key] = machine_of(self.hardware, counts)
        return self._machines[key]

    def decide(
        self,
        candidate: str,
        value: str,
        kernels: Sequence[str],
        apart: Sequence[KernelWork],
        merged: Sequence[KernelWork],
        *,
        joins: bool,
    ) -> FusionDecision:
        """Which way a candidate goes.

        Parameters
        ----------
        candidate : str
            `REPEATED` and its like.
        value : str
            What it is about.
        kernels : sequence of str
            Those that it makes or changes, by their operators.
        apart, merged : sequence of KernelWork
            The kernels either way, in the order in which they run.
        joins : bool
            What the rule is: whether it is merged where the prices are alike.
        """
        two, one = self.price(apart), self.price(merged)
        if self.fusion != FUSIONS[0]:
            taken = self.fusion == FUSIONS[1]
        elif joins:
            taken = two.seconds >= LEAST_GAIN * one.seconds
        else:
            taken = one.seconds < LEAST_GAIN * two.seconds
        return FusionDecision(candidate, value, tuple(kernels), taken, two, one)


def _number(shape: Sequence[Any]) -> int:
    """Elements of a shape, for an estimate."""
    return math.prod(representative(size) for size in shape)
