# SPDX-License-Identifier: Apache-2.0
"""The modelled MLU: what iOps of vectors and of matrices take."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.hardware.machine_model import CONTRACT, VECTOR, GraphCounts, IOpCounts
from uir_tvm.target.bang.machine import machine

MLU = hardware.get("mlu370-x8", "bang")
COUNTS = GraphCounts(
    units=16, groups=4, num_units=4, weights=np.ones(1), rows=(), held={"reg": 0, "sram": 0},
    live={"reg": 0, "sram": 0}, parameters={}, loops=0, vectors=1.0,
)  # fmt: skip
ADD = IOpCounts(
    op="binary", name="add", category=VECTOR, axis="", kind="add", runs=1, present=np.ones(1),
    elements=np.ones(1), shape=(1, 1), width=4.0, words=1.0, loop="", stages=1, trips=1, depth=0, group=1,
    transfers=(), local_bytes=(8.0, 4.0),
)  # fmt: skip


@pytest.mark.parametrize(("width", "figure"), [(2.0, "matmul_f16"), (4.0, "matmul_f32")])
def test_products_are_of_the_matrix_unit_and_all_else_of_vectors(width: float, figure: str) -> None:
    """An element of a product is a multiplication and an addition."""
    model = machine(MLU, COUNTS)
    product, start = model.vector(attrs.evolve(ADD, op="contract", name="", category=CONTRACT, width=width))
    assert product == 2 / MLU.figures[figure] / MLU.figures["clock_hz"]
    added, starts = model.vector(attrs.evolve(ADD, width=width))
    assert added == width / MLU.figures["vector_bytes_per_cycle"] / MLU.figures["clock_hz"]
    assert starts >= start > 0
