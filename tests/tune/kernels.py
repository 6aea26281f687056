# SPDX-License-Identifier: Apache-2.0
"""Kernels to keep schedules of, and schedules of them by hand."""

from __future__ import annotations

import functools

import tvm
from tvm import relax, tirx
from tvm.s_tir import Schedule
from uir_tvm import hardware, kernel_graph
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.row_chain import attach_producers, map_chain
from uir_tvm.target import registry

from ..kernel_graph.programs import module

op = relax.op
SHAPE = (24, 40)


def model(double: bool = False) -> tvm.IRModule:
    """relu(x + y), or twice that."""
    factor = relax.const(2.0, "float32")

    def body(emit: object, x: relax.Var, y: relax.Var) -> relax.Var:
        made = emit(op.nn.relu(emit(op.add(x, y))))  # type: ignore[operator]
        return emit(op.multiply(made, factor)) if double else made  # type: ignore[operator]

    return module({"x": (SHAPE, "float32"), "y": (SHAPE, "float32")}, body)


@functools.cache
def kernel(double: bool = False, target: str = "uir-cpu") -> tirx.PrimFunc:
    """The model's only kernel, as its kernel graph has it."""
    graph = kernel_graph.build(model(double), registry.resolve(target).target)
    (func,) = graph.kernels.values()
    return func


def scheduled(
    func: tirx.PrimFunc, columns: int = 8, kind: str = "cpu", groups: int | None = None
) -> Schedule:
    """A tile of one row and so many columns, dealt to all units, or to those of so many groups."""
    sch = Schedule(func, debug_mask="none")
    prepare(sch)
    hw = hardware.get(None, kind)
    attach_producers(sch, map_chain(sch, hw, SHAPE[0], (1, columns), num_groups=groups or int(hw.num_groups)))
    return sch
