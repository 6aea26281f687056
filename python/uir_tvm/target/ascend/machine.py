# SPDX-License-Identifier: Apache-2.0
"""How long an NPU takes, reckoned: the pipes of a core and the cost of its vector instructions."""

from __future__ import annotations

from collections.abc import Mapping

from ...hardware.machine_model import (
    ASSUMED_CLOCK,
    CONTRACT,
    REDUCE,
    GraphCounts,
    IOpCounts,
    MachineModel,
    Pipe,
    figure,
    per_unit,
)
from ...igraph.nodes import HardwareModel
from . import costs

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
    "ands": "And",
    "shls": "ShiftLeft",
    "shrs": "ShiftRight",
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


def machine(hw: HardwareModel, counts: GraphCounts) -> MachineModel:
    """The machine of a hardware model, as a graph uses it."""
    clock = figure(hw, "clock_hz", ASSUMED_CLOCK)
    table = {name.lower(): cost for name, cost in costs.VECTOR.items()}
    plain = costs.VECTOR[costs.DEFAULT]
    words, contract, memory = per_unit(hw, int(hw.num_groups))

    def pipe(name: str) -> Pipe:
        row = costs.PIPES[name]
        # where there are more groups than cores, as many blocks as cores deal them among themselves
        head = row.head + row.head_per_block * min(counts.units, int(hw.num_groups))
        return Pipe(row.bytes_per_cycle * clock, row.start / clock, head / clock, row.row / clock)

    def vector(row: IOpCounts) -> tuple[float, float]:
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

    return MachineModel(
        costs.KERNEL_CYCLES / clock,
        int(hw.num_groups),
        pipe("MTE2"),
        pipe("MTE3"),
        pipe("MTE1"),
        memory,
        vector,
        cached=costs.L2["read"] * clock,
        cache_bytes=int(figure(hw, "l2_bytes", 0)),
        sync=costs.SYNC_CYCLES / clock,
        words=words,
    )
