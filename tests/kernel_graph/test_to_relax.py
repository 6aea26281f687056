# SPDX-License-Identifier: Apache-2.0
"""Graphs as Relax that runs."""

from __future__ import annotations

from tvm import relax
from uir_tvm.kernel_graph import build, relax_passes, to_relax

from .programs import arguments, assert_close, check, constant, module, number, run

op = relax.op
F32 = "float32"


def test_relax_passes_take_models_and_graphs_alike() -> None:
    inputs = {"x": ((4, 8), "float32")}
    mod = module(
        inputs, lambda emit, x: (emit(op.nn.softmax(emit(op.matmul(x, constant(8, 8))))), emit(op.exp(x)))
    )
    args = arguments(inputs)
    expected = run(mod, args)
    for form in (mod, to_relax(build(mod))):
        assert_close(run(form, args, relax_passes("llvm")), expected)


def test_outputs_may_be_inputs_constants_and_repeats() -> None:
    """Each gets memory of its own, or is returned twice."""

    def body(emit, x):
        y = emit(op.exp(x))
        return y, emit(op.reshape(y, (8, 6))), emit(op.add(x, number(0.0))), x

    graph = check({"x": ((6, 8), F32)}, body)
    assert len(graph.outputs) == 4
