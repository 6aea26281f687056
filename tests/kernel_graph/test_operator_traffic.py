# SPDX-License-Identifier: Apache-2.0
"""DRAM bytes by hand."""

from __future__ import annotations

from tvm import relax
from uir_tvm.kernel_graph import build

from .programs import constant, module

op = relax.op
F32 = "float32"


def test_traffic_counts_a_gather_by_its_rows() -> None:
    """The rows of an embedding that are read count, not the table."""

    def body(emit, ids):
        return emit(op.take(constant(1000, 8), ids, axis=0, mode="fast"))

    graph = build(module({"ids": ((4,), "int64")}, body))
    assert graph.fused_bytes == 4 * 8 * 4 * 2 + 4 * 8
    assert graph.unfused_bytes == graph.fused_bytes
