# SPDX-License-Identifier: Apache-2.0
"""A kernel has no more blocks than the device has cores of the kind that it needs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from uir_tvm import hardware
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IOp, IPointer, ISlice, make
from uir_tvm.target.ascend.lower import _check_blocks

CHIP = hardware.get("910b2", "ascend")
CUBES, VECTORS = int(CHIP.figures["aic_cores"]), int(CHIP.num_groups)
A, B, C = (ISlice(IPointer(name, "dram", "fp16", 256), 0, (16, 16)) for name in "abc")
FILL, PRODUCT = make.fill(C, 0.0), make.contract(C, A, B, accumulate=True)


def check(iops: list[IOp], groups: int) -> None:
    graph = SimpleNamespace(
        name="g",
        hardware=CHIP,
        num_groups=groups,
        num_units=1,
        groups=None,
        walk=lambda: [(iop, ()) for iop in iops],
    )
    _check_blocks(cast(Any, graph))


def test_vector_kernels_have_a_vector_core_for_each_block() -> None:
    check([FILL], VECTORS)
    with pytest.raises(CodegenError, match=f"{VECTORS} vector cores"):
        check([FILL], VECTORS + 1)


def test_one_product_makes_it_a_kernel_of_cube_cores() -> None:
    assert CUBES < VECTORS
    check([FILL, PRODUCT], CUBES)
    with pytest.raises(CodegenError, match=f"{CUBES} cube cores"):
        check([FILL, PRODUCT], CUBES + 1)
