# SPDX-License-Identifier: Apache-2.0
"""Small Relax modules, and their results by TVM's own lowering and by the kernel graph's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph, build, to_relax, vm_passes

from tests.stock import stock

Spec = tuple[tuple[int, ...], str]

# Sums of a few hundred fp32 products in another order, and exp, erf and tanh of two libraries: a few ulp of
# the largest term. Relative to the largest element of the result.
TOLERANCE = 3e-6


def module(inputs: Mapping[str, Spec], body: Callable[..., Any]) -> tvm.IRModule:
    """A module with one function ``main``; ``body(emit, *vars)`` returns its result or a tuple of results."""
    builder = relax.BlockBuilder()
    params = [relax.Var(name, relax.TensorType(shape, dtype)) for name, (shape, dtype) in inputs.items()]
    with builder.function("main", params):
        with builder.dataflow():
            result = body(builder.emit, *params)
            outputs = [
                builder.emit_output(value) for value in (result if isinstance(result, tuple) else (result,))
            ]
        builder.emit_func_output(relax.Tuple(outputs) if isinstance(result, tuple) else outputs[0])
    return builder.get()


def constant(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> tvm.ir.Expr:
    """A random fp32 constant."""
    return relax.const(np.random.default_rng(seed).uniform(low, high, shape).astype("float32"))


def arguments(inputs: Mapping[str, Spec], seed: int = 1) -> list[np.ndarray]:
    """Random inputs: floats in [-2, 2), integers in [0, 4), bools."""
    rng = np.random.default_rng(seed)
    arrays = []
    for shape, dtype in inputs.values():
        if dtype == "bool":
            arrays.append(rng.integers(0, 2, shape).astype(bool))
        elif dtype.startswith("int"):
            arrays.append(rng.integers(0, 4, shape).astype(dtype))
        else:
            arrays.append(rng.uniform(-2, 2, shape).astype(dtype))
    return arrays


def run(mod: tvm.IRModule, args: list[np.ndarray], pipeline: Any = None) -> list[np.ndarray]:
    """Results of a module on TVM's LLVM, by its default pipeline or another."""
    options = {} if pipeline is None else {"relax_pipeline": pipeline}
    machine = relax.VirtualMachine(stock(mod, **options), tvm.cpu())
    result = machine["main"](*(tvm.runtime.tensor(array) for array in args))
    return [tensor.numpy() for tensor in (result if not hasattr(result, "numpy") else [result])]


def run_graph(graph: KernelGraph, args: list[np.ndarray]) -> list[np.ndarray]:
    """Results of a graph; its kernels unscheduled, through TVM's own lowering."""
    return run(to_relax(graph), args, vm_passes())


def assert_close(actual: list[np.ndarray], expected: list[np.ndarray], tolerance: float = TOLERANCE) -> None:
    """Equal shapes and dtypes, and values within the tolerance of the largest one."""
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        scale = max(1.0, float(np.abs(np.nan_to_num(e.astype("float64"), posinf=0, neginf=0)).max(initial=0)))
        np.testing.assert_allclose(a, e, rtol=0, atol=tolerance * scale)


def check(
    inputs: Mapping[str, Spec],
    body: Callable[..., Any],
    args: list[np.ndarray] | None = None,
    fusion: str = "priced",
) -> KernelGraph:
    """Build the graph of a program and compare its results with TVM's own lowering of the program."""
    mod = module(inputs, body)
    args = arguments(inputs) if args is None else args
    graph = build(mod, fusion=fusion)
    assert graph.fallbacks == ()
    assert_close(run_graph(graph, args), run(mod, args))
    return graph


def kinds(graph: KernelGraph) -> list[str]:
    """Hero or library operator of every node, in order."""
    return [getattr(node, "hero", None) or node.kind for node in graph.nodes]


def only(graph: KernelGraph) -> Any:
    """Attributes of the graph's only node, a library operator."""
    (node,) = graph.library_ops
    assert len(graph.nodes) == 1
    return node.attrs


def number(value: float) -> tvm.ir.Expr:
    """An fp32 scalar."""
    return relax.const(value, "float32")
