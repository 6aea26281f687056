# SPDX-License-Identifier: Apache-2.0
"""Graphs as Relax that runs."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax
from uir_tvm.kernel_graph import build, build_with, relax_passes, to_relax, vm_passes
from uir_tvm.kernel_graph.to_relax import graph_constants
from uir_tvm.target.ascend.library import TABLE as ASCEND

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


def test_weights_are_a_function_that_returns_the_constants() -> None:
    """In the order of their first use, each once, as the kernels read them."""

    def body(emit, x):
        w = constant(8, 4)
        return emit(op.matmul(emit(op.add(emit(op.matmul(x, w)), constant(4))), constant(4, 8, seed=2)))

    graph = build_with(module({"x": ((3, 8), F32)}, body), ASCEND)
    constants = graph_constants(graph)
    assert [tensor.shape for tensor in constants] == [(8, 4), (4,), (4, 8)]
    mod = to_relax(graph, weights=True)
    machine = relax.VirtualMachine(relax.build(vm_passes()(mod), "llvm"), tvm.cpu())
    for tensor, array in zip(constants, machine["weights"](), strict=True):
        np.testing.assert_array_equal(array.numpy(), tensor.constant.value.numpy())
    assert "weights" not in {gvar.name_hint for gvar in to_relax(graph).functions}
