# SPDX-License-Identifier: Apache-2.0
"""What it takes to map a model to kernels grows as the model does: counted in steps, not in time."""

from __future__ import annotations

import sys

import numpy as np
import tvm
from tvm import relax
from uir_tvm import kernel_graph


def model(layers: int) -> tvm.IRModule:
    """Products of transposed weights, chains and normalizations; each reads the last layer twice."""
    rng = np.random.default_rng(0)
    builder = relax.BlockBuilder()
    x = first = relax.Var("x", relax.TensorType((4, 16), "float32"))
    with builder.function("main", [first]):
        with builder.dataflow():
            for _ in range(layers):
                weight = relax.const(rng.standard_normal((16, 16)).astype("float32"))
                y = builder.emit(relax.op.matmul(x, relax.op.permute_dims(weight)))
                z = builder.emit(relax.op.add(relax.op.multiply(relax.op.tanh(y), y), x))
                z = builder.emit(relax.op.subtract(relax.op.nn.softmax(z), relax.op.sigmoid(z)))
                x = builder.emit(relax.op.add(x, relax.op.exp(relax.op.nn.relu(z))))
            result = builder.emit_output(x)
        builder.emit_func_output(result)
    return builder.get()


def steps(mod: tvm.IRModule) -> int:
    """Calls, and values that generators gave, while the graph is built."""
    count = 0

    def note(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        kernel_graph.build(mod, "uir-cpu")
    finally:
        sys.setprofile(None)
    return count


def test_four_times_the_layers_take_four_times_the_steps() -> None:
    few, many = model(10), model(40)
    kernel_graph.build(few, "uir-cpu")  # what is computed once in a process
    assert steps(many) < 4.2 * steps(few)


def summed_both_ways(count: int) -> tvm.IRModule:
    """Values of two vectors, each of which two kernels read, and compute (`kernel_graph.recompute`)."""
    builder = relax.BlockBuilder()
    column = relax.Var("column", relax.TensorType((64, 1), "float32"))
    row = relax.Var("row", relax.TensorType((1, 64), "float32"))
    with builder.function("main", [column, row]):
        with builder.dataflow():
            sums = []
            for index in range(count):
                value = builder.emit(relax.op.add(column, relax.op.multiply(row, relax.const(0.5 + index))))
                sums += [builder.emit(relax.op.sum(value, axis=[axis])) for axis in (0, 1)]
            results = [builder.emit_output(each) for each in sums]
        builder.emit_func_output(relax.Tuple(results))
    return builder.get()


def test_values_that_are_computed_again_take_steps_as_many_as_they_are() -> None:
    few, many = summed_both_ways(4), summed_both_ways(16)
    assert sum(each.candidate == "recomputed" for each in kernel_graph.build(few, "uir-cpu").fusion) == 4
    assert steps(many) < 4.4 * steps(few)
