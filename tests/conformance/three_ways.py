# SPDX-License-Identifier: Apache-2.0
"""One PrimFunc three ways: its iGraph in the interpreter, what the target emits, and TVM's own lowering."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import tirx
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.igraph import interpreter
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.pipeline import KernelRecord
from uir_tvm.runtime.kernel import tensor_of
from uir_tvm.target import registry
from uir_tvm.target.device_module import device_module

from tests.stock import stock

#: Largest difference relative to the largest value.  fp32: sums of some hundred terms in another order and
#: functions that are a few ULP apart, one after the other in a chain; narrow floats round after every iOp,
#: where TVM keeps them as they are written; fp64 and integers follow the same rules with their own ULP.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 8e-3, "bfloat16": 6e-2}
#: Integers are small, so that as indices they stay within every table.
HIGHEST_INTEGER = 5

_NUMPY = {row.tvm: row.numpy for row in DTYPES.values()}


def random_arguments(func: tirx.PrimFunc, seed: int = 0) -> list[np.ndarray]:
    """Arrays for all buffers of a function, outputs too: what is not written must not look right."""
    rng = np.random.default_rng(seed)
    arrays = []
    for param in func.params:
        shape = tuple(int(n) for n in param.shape)
        dtype = _NUMPY[str(param.dtype)]
        if dtype == np.bool_:
            arrays.append(rng.integers(0, 2, shape).astype(dtype))
        elif dtype.kind in "iu":
            arrays.append(rng.integers(0, HIGHEST_INTEGER, shape).astype(dtype))
        else:
            arrays.append(rng.uniform(-2, 2, shape).astype(dtype))
    return arrays


def run_function(
    func: tirx.PrimFunc, target: tvm.target.Target, arrays: list[np.ndarray]
) -> list[np.ndarray]:
    """All arguments after a call of a PrimFunc that ``target`` lowers further, as a program calls it."""
    with called_by_a_program():
        built = tvm.compile(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}), target=target)
    return _called(built, arrays)


def _called(built: Any, arrays: list[np.ndarray]) -> list[np.ndarray]:
    tensors = [tensor_of(a, a.shape) for a in arrays]
    built["main"](*tensors)
    return [t.numpy() for t in tensors]


def run_emitted(lowered: Any, target: tvm.target.Target, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """All arguments after a call of what a target made, on the device that the target stands for."""
    if not isinstance(lowered, DeviceKernel):
        return run_function(lowered, target, arrays)
    place = registry.place_of(target)
    tensors = [tensor_of(a, a.shape, tvm.device(place.device)) for a in arrays]
    device_module({"main": lowered}, place)["main"](*tensors)
    return [t.numpy() for t in tensors]


def compare_record(
    record: KernelRecord, target: tvm.target.Target, arrays: list[np.ndarray] | None = None
) -> None:
    """Compare the three of a kernel that was compiled for a target; nothing to do where it has no iGraph.

    Raises
    ------
    AssertionError
        Two of the three differ by more than `TOLERANCE`.
    """
    graph, name = record.igraph, record.name
    if record.fallback or graph is None:
        return
    # in a model it is bound to the target already, but TVM is to lower it for the host
    func = record.products["prim_func"].without_attr("target")
    arrays = random_arguments(func) if arrays is None else arrays
    wanted = _called(stock(func), arrays)
    emitted = run_emitted(record.lowered, target, arrays)
    read = [a for a, p in zip(arrays, graph.params, strict=True) if p.role != "out"]
    reference = iter(interpreter.run(graph, *read))
    for pointer, ours, theirs in zip(graph.params, emitted, wanted, strict=True):
        if pointer.role == "in":
            continue
        agree(next(reference), theirs, f"{name}: interpreter and TVM on {pointer.name}")
        agree(ours, theirs, f"{name}: emitted code and TVM on {pointer.name}")


def agree(got: Any, want: Any, what: str) -> None:
    """Equal for what is no float; else within `TOLERANCE` of the largest value, or of one."""
    got, want = np.asarray(got).reshape(-1), np.asarray(want).reshape(-1)
    assert got.dtype == want.dtype, what
    tolerance = TOLERANCE.get(str(got.dtype))
    if tolerance is None:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    limit = tolerance * max(1.0, float(finite.max(initial=0)))
    np.testing.assert_allclose(a, b, rtol=0, atol=limit, err_msg=what)
