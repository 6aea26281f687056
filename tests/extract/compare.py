# SPDX-License-Identifier: Apache-2.0
"""Compare an extracted graph, run by the interpreter, with TVM's own lowering of the same function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph, print_igraph
from uir_tvm.igraph.dtypes import numpy_of

from tests.extracted import extracted
from tests.stock import stock

HARDWARE = HardwareModel("test", "cpu", 4, 1, 1 << 16, 0, 64)
GROUPED = HardwareModel("grouped", "cpu", 2, 4, 1 << 16, 1 << 16, 64)
#: Relative error of a chain of fp32 functions whose accuracies differ by a few ULP, after sums of
#: some hundred terms in another order; fp16 rounds once per iOp where TVM may keep fp32.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 4e-3, "bfloat16": 3e-2}


def random_inputs(graph: IGraph, given: Mapping[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays for the parameters that are read, flat; small integers for integer dtypes."""
    rng = np.random.default_rng(seed)
    out: dict[str, np.ndarray] = {}
    for p in graph.params:
        if p.role == "out":
            continue
        dtype = numpy_of(p.dtype)
        if p.name in given:
            out[p.name] = np.ascontiguousarray(given[p.name]).astype(dtype).reshape(-1)
        elif dtype == np.bool_:
            out[p.name] = rng.integers(0, 2, p.size).astype(bool)
        elif dtype.kind in "iu":
            out[p.name] = rng.integers(0, 5, p.size).astype(dtype)
        else:
            out[p.name] = rng.uniform(-2, 2, p.size).astype(dtype)
    return out


def run_tvm(func: Any, graph: IGraph, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The out and inout parameters as TVM's lowering computes them, flat."""
    module = stock(func)
    arguments, outputs = [], []
    for param, pointer in zip(func.params, graph.params, strict=True):
        shape = tuple(int(n) for n in param.shape)
        array = inputs.get(str(pointer.name), np.zeros(pointer.size, numpy_of(pointer.dtype)))
        if array.dtype == ml_dtypes.bfloat16:
            tensor = tvm.runtime.empty(shape, "bfloat16")
            tensor.copyfrom(array.reshape(shape))
        else:
            tensor = tvm.runtime.tensor(array.reshape(shape))
        arguments.append(tensor)
        if pointer.role != "in":
            outputs.append(tensor)
    module["main"](*arguments)
    return [t.numpy().reshape(-1) for t in outputs]


def check(
    func: Any,
    scheduled: Any = None,
    given: Mapping[str, np.ndarray] | None = None,
    hardware: HardwareModel = HARDWARE,
) -> tuple[IGraph, list[np.ndarray]]:
    """Extract ``scheduled`` (or ``func`` itself), complete, run, and compare with TVM's lowering of ``func``.

    Returns
    -------
    (graph, outputs of the interpreter)
    """
    graph = extracted(scheduled if scheduled is not None else func, hardware)
    assert str(parse_igraph(print_igraph(graph), hardware)) == str(graph)
    inputs = random_inputs(graph, given or {})
    ours = interpreter.run(graph, inputs)
    theirs = run_tvm(func, graph, inputs)
    for a, b in zip(ours, theirs, strict=True):
        a = a.reshape(-1)
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
        else:
            tolerance = TOLERANCE[str(a.dtype)]
            np.testing.assert_allclose(
                a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance
            )
    return graph, ours
