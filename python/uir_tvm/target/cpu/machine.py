# SPDX-License-Identifier: Apache-2.0
"""How long a processor takes, reckoned; also for kinds of hardware that have no machine of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...hardware.machine_model import (
    CONTRACT,
    IRREGULAR,
    REDUCE,
    GraphCounts,
    IOpCounts,
    MachineModel,
    Pipe,
    figure,
)
from ...igraph.nodes import HardwareModel

# Chosen so that measured schedules come out in the right order on an x86 core with 32-byte vectors
# (`scripts/cost_model_quality.py` tells how well they do): they are of this formula, not of the instructions.
#: Seconds of a call, of handing work to other threads, of the loops of an iOp, and of each row of a transfer.
CPU_LAUNCH, CPU_FORK, CPU_START, CPU_ROW = 1e-7, 6e-6, 1.6e-9, 2.3e-9
#: Cycles of a clock of this rate that a whole vector takes.  Rates that `hardware.rates` measures on a host
#: are of the moment: what is reckoned must not change from one process to the next.
CPU_CLOCK = 2.5e9
#: Additions or multiplications of whole vectors that a core starts in a cycle (`presets.FMA_PER_CYCLE`).
CPU_PIPES = 2
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


def machine(hw: HardwareModel, counts: GraphCounts) -> MachineModel:
    """The machine of a hardware model, as a graph uses it."""
    units = max(int(hw.num_groups) * int(hw.num_units), 1)
    # less than a register takes as many instructions as a whole one; more are several at a time
    wide = max(int(hw.vector_bytes) * min(counts.vectors, 1.0), 4)
    near = figure(hw, "l1_bytes", 32768)
    # tiles that leave the first cache: every doubling costs
    crowded = 1.0 + 0.2 * min(max(math.log2(max(counts.live["reg"], 1) / near), 0.0), 4.0)
    touched = sum(counts.parameters.values()) / 2
    l2, l3 = figure(hw, "l2_bytes", 1 << 18) * units, figure(hw, "l3_bytes", 0)
    cycles = CPU_NEAR if touched <= l2 else CPU_FAR if touched <= l3 else CPU_MEMORY
    pipe = Pipe(wide * CPU_CLOCK / cycles, CPU_START, 0.0, CPU_ROW)

    def vector(row: IOpCounts) -> tuple[float, float]:
        if row.category == CONTRACT:
            taken = CPU_CONTRACT
        elif row.category == REDUCE:
            taken = CPU_FOLD[row.axis]
        elif row.category == IRREGULAR:
            taken = CPU_IRREGULAR
        else:
            taken = CPU_CYCLES.get(row.kind, CPU_COPY)
        return taken * crowded * 4 * row.words / wide / CPU_CLOCK, CPU_START

    return MachineModel(
        CPU_LAUNCH if counts.units == 1 else CPU_FORK,
        units,
        pipe,
        pipe,
        pipe,
        CPU_DRAM if touched > max(l2, l3) else units * pipe.rate,
        vector,
        sync=CPU_FORK,
        pipes=False,
        words=CPU_PIPES * int(hw.vector_bytes) / 4 * CPU_CLOCK,
    )
