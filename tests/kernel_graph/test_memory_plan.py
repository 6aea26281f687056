# SPDX-License-Identifier: Apache-2.0
"""Buffers shared between intermediates."""

from __future__ import annotations

from tvm import relax
from uir_tvm.kernel_graph import build, memory_plan, to_relax

from .programs import module

op = relax.op
F32 = "float32"


def test_intermediates_share_buffers() -> None:
    """Ten kernels in a row need two buffers and the output, not ten."""

    def body(emit, x):
        for axis in [0, 1] * 5:
            x = emit(op.nn.softmax(x, axis=axis))
        return x

    graph = build(module({"x": ((32, 32), "float32")}, body))
    assert len(graph.custom_ops) == 10
    plan = memory_plan(to_relax(graph))
    assert plan.tensors == 10 * 4096
    assert plan.planned == 3 * 4096
