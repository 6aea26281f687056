# SPDX-License-Identifier: Apache-2.0
"""A model small enough to compile in a second: linear, layer norm, softmax."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
import tvm
import uir_tvm
from tvm import relax

ROWS, WIDTH = 4, 32
#: fp32 sums of 32 terms in another order, and exp of two libraries.
TOLERANCE = 1e-6


def _weights() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((WIDTH, WIDTH)).astype("float32"), rng.standard_normal(WIDTH).astype("float32")


def module() -> tvm.IRModule:
    """softmax(layer_norm(x @ w + b))."""
    w, b = _weights()
    ones, zeros = np.ones(WIDTH, "float32"), np.zeros(WIDTH, "float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((ROWS, WIDTH), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.add(relax.op.matmul(x, relax.const(w)), relax.const(b)))
            y = builder.emit(relax.op.nn.layer_norm(y, relax.const(ones), relax.const(zeros), axes=[-1]))
            result = builder.emit_output(relax.op.nn.softmax(y))
        builder.emit_func_output(result)
    return builder.get()


def expected(x: np.ndarray) -> np.ndarray:
    """The model in float64."""
    w, b = _weights()
    y = x.astype("float64") @ w + b
    y = (y - y.mean(1, keepdims=True)) / np.sqrt(y.var(1, keepdims=True) + 1e-5)
    e = np.exp(y - y.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def example(seed: int = 1) -> np.ndarray:
    """An input."""
    return np.random.default_rng(seed).standard_normal((ROWS, WIDTH)).astype("float32")


@functools.cache
def executable() -> uir_tvm.Executable:
    """The model compiled, once for all tests."""
    return uir_tvm.compile(module(), name="tiny")


def relax_dump(folder: pathlib.Path) -> pathlib.Path:
    """The model as a file that the command line compiles."""
    path = folder / "tiny.relax.json"
    path.write_text(tvm.ir.save_json(module()))
    return path


def elementwise(fn: object, *inputs: tuple[tuple[int, ...], str]) -> tvm.IRModule:
    """A module whose ``main`` applies a Relax function to inputs of these shapes and dtypes."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", relax.TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(inputs)]
    with builder.function("main", params):
        with builder.dataflow():
            result = fn(*params)  # type: ignore[operator]
            parts = result if isinstance(result, tuple) else (result,)
            outputs = [builder.emit_output(builder.emit(part)) for part in parts]
        builder.emit_func_output(relax.Tuple(outputs) if isinstance(result, tuple) else outputs[0])
    return builder.get()
