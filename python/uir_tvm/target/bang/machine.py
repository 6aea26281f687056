# SPDX-License-Identifier: Apache-2.0
"""How long an MLU takes, reckoned: the pipes of a core and the passes of its vector functions."""

from __future__ import annotations

from collections.abc import Mapping

from ...hardware.machine_model import (
    ASSUMED_CLOCK,
    ASSUMED_MEMORY,
    CONTRACT,
    REDUCE,
    GraphCounts,
    IOpCounts,
    MachineModel,
    Pipe,
    figure,
)
from ...igraph.nodes import HardwareModel
from . import costs

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


def machine(hw: HardwareModel, counts: GraphCounts) -> MachineModel:
    """The machine of a hardware model, as a graph uses it."""
    clock = figure(hw, "clock_hz", ASSUMED_CLOCK)
    cores = int(hw.num_groups) * int(hw.num_units)
    lanes_bytes = figure(hw, "vector_bytes_per_cycle", 128)
    matmul = figure(hw, "matmul_f16", 3072), figure(hw, "matmul_f32", 768)
    start = costs.START / clock

    def pipe(name: str) -> Pipe:
        row = costs.PIPES[name]
        return Pipe(row.bytes_per_cycle * clock, row.start / clock, row.head / clock, row.row / clock)

    def vector(row: IOpCounts) -> tuple[float, float]:
        if row.category == CONTRACT:
            return 2 / matmul[row.width > 2] / clock, start
        count: float
        plain, table = _BANG.get(row.name if row.op in ("unary", "binary") else row.op, (1, ()))
        passes, count = plain + sum(costs.PASSES[name] for name in table), plain + len(table)
        if row.category == REDUCE and row.axis == "row":
            passes, count = BANG_FOLD, BANG_FOLDS
        if row.op == "broadcast" and row.axis == "row":
            # each row is filled with a value that is read first
            count = row.shape[0] * (1 + costs.SCALAR_CYCLES / costs.START)
        return passes * row.width / lanes_bytes / clock, count * start

    return MachineModel(
        costs.KERNEL_CYCLES / clock,
        cores,
        pipe("IO"),
        pipe("IO"),
        pipe("MOVE"),
        figure(hw, "dram_bytes_per_second", ASSUMED_MEMORY),
        vector,
        cluster=figure(hw, "cluster_bytes_per_second", 0),
        sync=costs.CLUSTER_SYNC_CYCLES / clock,
        words=lanes_bytes / 4 * clock,
    )
