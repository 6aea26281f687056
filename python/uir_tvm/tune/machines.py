# SPDX-License-Identifier: Apache-2.0
"""What a unit of each kind of target does in a second: what `analytic` computes times from.

Figures come from the hardware model, its rates (`uir_tvm.hardware.rates`) and the tables of instructions'
costs; what none of these says (starts on a CPU, latency of a GPU's memory) is a constant here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping

import attrs

from ..hardware import ascend_costs, bang_costs
from ..hardware.rates import Rates, rates_of
from ..igraph.nodes import HardwareModel
from .tally import CONTRACT, IRREGULAR, REDUCE, Row, Tally

#: Where a model states no rates: two instructions of a vector in a cycle of this clock, bytes a second.
ASSUMED_CLOCK, ASSUMED_MEMORY = 2e9, 2e10


@attrs.frozen
class Pipe:
    """A pipe of a unit that moves bytes.

    Attributes
    ----------
    rate : float
        Most bytes a second.
    start, head, row : float
        Seconds of each transfer, of the kernel's first one, and of each further piece of a transfer.
    """

    rate: float
    start: float = 0.0
    head: float = 0.0
    row: float = 0.0


@attrs.frozen(eq=False)
class Machine:
    """A device as units that take turns.

    Attributes
    ----------
    launch : float
        Seconds that no unit accounts for.
    slots : int
        Units that run at once.
    load, store, onchip : Pipe
    memory : float
        Bytes a second of dram, for all units together.
    cluster : float
        The same for the units of a group alone; 0: no such limit.
    cached : float
        Bytes a second that a unit gets of what another transfer brought from dram before; 0: there is no
        cache, everything comes from dram.
    cache_bytes : int
        What is kept so.
    vector : callable
        Seconds of a unit for one element of an iOp, and for starting it: ``(Row) -> (float, float)``.
    sync : float
        Seconds of a meeting of units.
    pipes : bool
        Whether loads, computation and stores run on pipes of their own, all at once where iterations are in
        flight; otherwise units hide each other's waits.
    """

    launch: float
    slots: int
    load: Pipe
    store: Pipe
    onchip: Pipe
    memory: float
    vector: Callable[[Row], tuple[float, float]]
    cluster: float = 0.0
    cached: float = 0.0
    cache_bytes: int = 0
    sync: float = 0.0
    pipes: bool = True


def machine_of(hw: HardwareModel, tally: Tally) -> Machine:
    """The machine of a hardware model, as a graph uses it (a GPU holds fewer units of many registers)."""
    return MACHINES.get(str(hw.kind), _plain)(hw, tally)


def _figure(hw: HardwareModel, name: str, default: float) -> float:
    return float(hw.figures[name]) if name in hw.figures else default


@functools.lru_cache(maxsize=64)
def _rates(hw: HardwareModel) -> Rates:
    return rates_of(hw)


def _per_unit(hw: HardwareModel, units: int) -> tuple[float, float, float]:
    """Words and operations of contractions a second of one of so many units, bytes a second of dram."""
    rates, lanes = _rates(hw), max(int(hw.vector_bytes) // 4, 1)
    words = (rates.operations.per_second or units * lanes * 2 * ASSUMED_CLOCK) / units
    contract = (rates.contract.per_second or 2 * units * words) / units
    return words, contract, rates.memory[-1].rate.per_second or ASSUMED_MEMORY


def _steps(hw: HardwareModel) -> Mapping[str, int]:
    return _rates(hw).steps


# --- Ascend --------------------------------------------------------------------------------------

#: iOp or its name -> the function whose cost it has, where it is not called so.
_ASCEND: Mapping[str, str] = {
    "neg": "Muls",
    "recip": "Reciprocal",
    "log": "Ln",
    "log1p": "Ln",
    "log2": "Ln",
    "exp2": "Exp",
    "subs": "Adds",
    "rsubs": "Adds",
    "divs": "Muls",
    "rdivs": "Div",
    "pow": "Power",
    "pows": "Power",
    "not": "Not",
    "sinh": "Tanh",
    "cosh": "Tanh",
    "cast": "Cast",
    "compare": "Compare",
    "select": "Select",
    "fill": "Duplicate",
    "iota": "Adds",
    "move": "DataCopy",
    "broadcast": "Brcb",
    "transpose": "Transpose",
    "gather": "Gather",
    "scatter": "Gather",
}


def _ascend(hw: HardwareModel, tally: Tally) -> Machine:
    clock = _figure(hw, "clock_hz", ASSUMED_CLOCK)
    table = {name.lower(): cost for name, cost in ascend_costs.VECTOR.items()}
    plain = ascend_costs.VECTOR[ascend_costs.DEFAULT]
    _, contract, memory = _per_unit(hw, int(hw.num_groups))

    def pipe(name: str) -> Pipe:
        row = ascend_costs.PIPES[name]
        head = row.head + row.head_per_block * tally.units
        return Pipe(row.bytes_per_cycle * clock, row.start / clock, head / clock, row.row / clock)

    def vector(row: Row) -> tuple[float, float]:
        if row.category == CONTRACT:
            return 2 / contract, 20 / clock
        if row.category == REDUCE:
            # halves of the tile are added up, or rows by instructions of their own
            name = "whole" + "reduce" + {"add": "sum"}.get(row.name, row.name)
        else:
            name = row.name if row.op in ("unary", "binary") else row.op
            name = _ASCEND.get(name, name).lower()
        cost = table.get(name, plain)
        k, b = (cost.k2, cost.b2) if row.width <= 2 else (cost.k4 * max(row.width / 4, 1), cost.b4)
        return k / clock, b / clock

    return Machine(
        ascend_costs.KERNEL_CYCLES / clock,
        int(hw.num_groups),
        pipe("MTE2"),
        pipe("MTE3"),
        pipe("MTE1"),
        memory,
        vector,
        cached=ascend_costs.L2["read"] * clock,
        cache_bytes=int(_figure(hw, "l2_bytes", 0)),
        sync=ascend_costs.SYNC_CYCLES / clock,
    )


# --- Cambricon -----------------------------------------------------------------------------------

#: Name of an iOp -> (plain instructions, functions of a table) that it is made of; others: (1, none).
_BANG: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "exp": (14, ("pow2",)),
    "exp2": (0, ("pow2",)),
    "log": (4, ("log2",)),
    "log1p": (8, ("log2",)),
    "log2": (0, ("log2",)),
    "erf": (12, ("pow2", "recip")),
    "tanh": (4, ("pow2", "recip")),
    "sigmoid": (2, ("pow2", "recip")),
    "div": (4, ("recip",)),
    "floordiv": (24, ("recip",)),
    "rdivs": (1, ("recip",)),
    "recip": (0, ("recip",)),
    "sqrt": (0, ("sqrt",)),
    "rsqrt": (0, ("rsqrt",)),
    "sin": (0, ("sin",)),
    "cos": (0, ("cos",)),
    "pow": (12, ("log2", "pow2")),
    "pows": (12, ("log2", "pow2")),
    "transpose": (0, ("transpose",)),
    "gather": (0, ("collect",)),
    "scatter": (0, ("collect",)),
}
#: Passes of a reduction of rows (they are transposed, then folded), and its instructions.
BANG_FOLD, BANG_FOLDS = 4.0, 6


def _bang(hw: HardwareModel, tally: Tally) -> Machine:
    clock = _figure(hw, "clock_hz", ASSUMED_CLOCK)
    cores = int(hw.num_groups) * int(hw.num_units)
    lanes_bytes = _figure(hw, "vector_bytes_per_cycle", 128)
    matmul = _figure(hw, "matmul_f16", 3072), _figure(hw, "matmul_f32", 768)
    start = bang_costs.START / clock

    def pipe(name: str) -> Pipe:
        row = bang_costs.PIPES[name]
        return Pipe(row.bytes_per_cycle * clock, row.start / clock, row.head / clock, row.row / clock)

    def vector(row: Row) -> tuple[float, float]:
        if row.category == CONTRACT:
            return 2 / matmul[row.width > 2] / clock, start
        count: float
        plain, table = _BANG.get(row.name if row.op in ("unary", "binary") else row.op, (1, ()))
        passes, count = plain + sum(bang_costs.PASSES[name] for name in table), plain + len(table)
        if row.category == REDUCE and row.axis == "row":
            passes, count = BANG_FOLD, BANG_FOLDS
        if row.op == "broadcast" and row.axis == "row":
            # each row is filled with a value that is read first
            count = row.shape[0] * (1 + bang_costs.SCALAR_CYCLES / bang_costs.START)
        return passes * row.width / lanes_bytes / clock, count * start

    return Machine(
        bang_costs.KERNEL_CYCLES / clock,
        cores,
        pipe("IO"),
        pipe("IO"),
        pipe("MOVE"),
        _figure(hw, "dram_bytes_per_second", ASSUMED_MEMORY),
        vector,
        cluster=_figure(hw, "cluster_bytes_per_second", 0),
        sync=bang_costs.CLUSTER_SYNC_CYCLES / clock,
    )


# --- NVIDIA --------------------------------------------------------------------------------------

# Orders of magnitude, by which schedules are compared before anything is measured; no measurements went in.
#: Seconds of a launch, of a load's way from dram, of a barrier, and of an instruction of a warp.
CUDA_LAUNCH, CUDA_LATENCY, CUDA_BARRIER, CUDA_ISSUE = 2.5e-6, 6e-7, 3e-8, 1e-8
#: Of the memory's rate, what kernels reach; what a warp alone does by its widest accesses, bytes a second.
CUDA_REACHED, CUDA_WARP = 0.9, 4e10


def _cuda(hw: HardwareModel, tally: Tally) -> Machine:
    sms = int(_figure(hw, "sms", hw.num_groups))
    warps = int(_figure(hw, "warps_per_sm", 64))
    registers = _figure(hw, "registers_per_sm", 65536) * 4
    by_registers = int(registers // max(tally.live["reg"] + 4096, 8192)) or 1
    blocks = max(min(warps, by_registers) // tally.num_units, 1)
    if tally.held["sram"]:
        blocks = max(min(blocks, int(_figure(hw, "sram_per_sm_bytes", 1e5) // tally.held["sram"])), 1)
    slots = sms * blocks * tally.num_units
    active = min(slots, tally.units)
    words, contract, memory = _per_unit(hw, max(active, sms * 4))
    rates = _rates(hw)
    shared = (rates.sram.per_second or 1e13) / max(active, 1)
    steps = _steps(hw)

    def vector(row: Row) -> tuple[float, float]:
        if row.category == CONTRACT:
            return 2 / contract, CUDA_ISSUE
        if row.category == REDUCE:
            return 2 * row.words / words, 10 * CUDA_ISSUE
        if row.category == IRREGULAR:
            return 4 * row.words / words, 4 * CUDA_ISSUE
        return row.words * steps.get(row.kind, 1) / words, CUDA_ISSUE

    return Machine(
        CUDA_LAUNCH,
        slots,
        Pipe(CUDA_WARP * tally.vectors, CUDA_LATENCY),
        Pipe(CUDA_WARP * tally.vectors, CUDA_ISSUE),
        Pipe(shared, 3 * CUDA_ISSUE),
        memory * CUDA_REACHED,
        vector,
        cached=4 * memory / max(active, 1),
        cache_bytes=int(_figure(hw, "l2_bytes", 0)),
        sync=CUDA_BARRIER,
        pipes=False,
    )


# --- CPUs, and kinds that this file does not know -------------------------------------------------

# Chosen so that measured schedules come out in the right order on an x86 core with 32-byte vectors
# (`scripts/cost_model_quality.py` tells how well they do): they are of this formula, not of the instructions.
#: Seconds of a call, of handing work to other threads, of the loops of an iOp, and of each row of a transfer.
CPU_LAUNCH, CPU_FORK, CPU_START, CPU_ROW = 1e-7, 6e-6, 1.6e-9, 2.3e-9
#: Cycles of a clock of this rate that a whole vector takes.  Rates that `hardware.rates` measures on a host
#: are of the moment: what is reckoned must not change from one process to the next.
CPU_CLOCK = 2.5e9
CPU_CYCLES: Mapping[str, float] = {
    "add": 1.0,
    "mul": 1.0,
    "logic": 1.0,
    "convert": 1.0,
    "divide": 8.0,
    "transcendental": 25.0,
}
#: Of what has no class (iOps that copy most often become part of the loops around them), of irregular ones,
#: of a multiplication with its addition, and of reductions, whose steps wait for each other within a row.
CPU_COPY, CPU_IRREGULAR, CPU_CONTRACT, CPU_FOLD = 0.5, 2.0, 2.5, {"row": 3.0, "col": 1.0}
#: Of a vector that comes from, or goes to, caches of a core, those of all cores, and memory.
CPU_NEAR, CPU_FAR, CPU_MEMORY = 1.5, 2.5, 6.0
#: Bytes a second of memory for all cores.
CPU_DRAM = 2.5e10


def _plain(hw: HardwareModel, tally: Tally) -> Machine:
    units = max(int(hw.num_groups) * int(hw.num_units), 1)
    # less than a register takes as many instructions as a whole one; more are several at a time
    wide = max(int(hw.vector_bytes) * min(tally.vectors, 1.0), 4)
    near = _figure(hw, "l1_bytes", 32768)
    # tiles that leave the first cache: every doubling costs
    crowded = 1.0 + 0.2 * min(max(math.log2(max(tally.live["reg"], 1) / near), 0.0), 4.0)
    touched = sum(tally.parameters.values()) / 2
    l2, l3 = _figure(hw, "l2_bytes", 1 << 18) * units, _figure(hw, "l3_bytes", 0)
    cycles = CPU_NEAR if touched <= l2 else CPU_FAR if touched <= l3 else CPU_MEMORY
    pipe = Pipe(wide * CPU_CLOCK / cycles, CPU_START, 0.0, CPU_ROW)

    def vector(row: Row) -> tuple[float, float]:
        if row.category == CONTRACT:
            taken = CPU_CONTRACT
        elif row.category == REDUCE:
            taken = CPU_FOLD[row.axis]
        elif row.category == IRREGULAR:
            taken = CPU_IRREGULAR
        else:
            taken = CPU_CYCLES.get(row.kind, CPU_COPY)
        return taken * crowded * 4 * row.words / wide / CPU_CLOCK, CPU_START

    return Machine(
        CPU_LAUNCH if tally.units == 1 else CPU_FORK,
        units,
        pipe,
        pipe,
        pipe,
        CPU_DRAM if touched > max(l2, l3) else units * pipe.rate,
        vector,
        sync=CPU_FORK,
        pipes=False,
    )


#: Kind of target -> its machine; others are taken for processors.
MACHINES: Mapping[str, Callable[[HardwareModel, Tally], Machine]] = {
    "ascend": _ascend,
    "bang": _bang,
    "cuda": _cuda,
    "cpu": _plain,
}
