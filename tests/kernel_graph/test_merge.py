# SPDX-License-Identifier: Apache-2.0
"""The PrimFunc of a group."""

from __future__ import annotations

from tvm import relax
from uir_tvm.kernel_graph import build

from .programs import module

op = relax.op
F32 = "float32"


def test_kernels_carry_their_hero_and_operators() -> None:
    graph = build(module({"x": ((4, 8), "float32")}, lambda emit, x: emit(op.nn.softmax(emit(op.exp(x))))))
    (function,) = graph.kernels.values()
    assert str(function.attrs["uir.hero"]) == "normalization"
    assert [str(name) for name in function.attrs["uir.ops"]] == ["exp", "nn.softmax"]
