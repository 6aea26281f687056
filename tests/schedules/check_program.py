# SPDX-License-Identifier: Apache-2.0
"""One random program: scheduled by its recipe, in the interpreter and emitted, against NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tvm
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.igraph import interpreter
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.pipeline import compile_kernel
from uir_tvm.runtime.kernel import tensor_of
from uir_tvm.target.registry import TARGETS

from tests.as_programs import run_igraph

from ..conformance.refusals import Subject, refusal_of
from .in_numpy import in_numpy
from .in_te import to_prim_func
from .program import Program, describe, random_inputs

#: Largest difference to NumPy in float64, relative to the largest value on the way: a handful of fp32
#: roundings and functions a few ULP off, and sums of up to some thousand fp32 terms.  An fp16 input is exact,
#: an fp16 result is rounded once.
TOLERANCE = {"float64": 1e-11, "float32": 5e-5, "float16": 1e-3}
_NUMPY = {row.tvm: row.numpy for row in DTYPES.values()}


def check(program: Program, seed: int = 0, target: str = "uir-cpu") -> None:
    """Raise AssertionError where the program has no iGraph, or one of the two is not what NumPy says."""
    text = "\n".join(describe(program))
    func = to_prim_func(program).with_attr("global_symbol", "main")
    chosen = TARGETS[target].target()
    record = compile_kernel(func, chosen, "main")
    graph = record.igraph
    assert graph is not None, f"no iGraph: {record.fallback}\n{text}"
    # dtypes that the target lists as refused must be refused, and nothing else
    dtypes = tuple(str(pointer.dtype) for pointer in graph.pointers)
    reason = refusal_of(target, Subject("program", "", dtypes=dtypes))
    assert re.search(reason.says if reason else "^$", record.fallback), f"{record.fallback}\n{text}"
    inputs = random_inputs(program, seed)
    expected, largest = in_numpy(program, inputs)
    results = {"interpreter": interpreter.run(graph, *inputs)}
    if TARGETS[target].kind == "cpu":
        results["emitted code"] = _emitted(record.lowered, chosen, func, inputs)
    elif reason is None:
        results["emitted code"] = run_igraph(record.optimized, target, *inputs)
    for what, made in results.items():
        for got, want in zip(made, expected, strict=True):
            _agree(
                np.asarray(got).reshape(want.shape), want, program, largest, f"{what} is not NumPy\n{text}"
            )


def _emitted(lowered: Any, target: Any, func: Any, inputs: list[np.ndarray]) -> list[np.ndarray]:
    outputs = func.params[len(inputs) :]
    # what is not written must not look right by chance
    blank = [np.full([int(n) for n in p.shape], 77, _NUMPY[str(p.dtype)]) for p in outputs]
    tensors = [tensor_of(a, a.shape) for a in [*inputs, *blank]]
    with called_by_a_program():
        built = tvm.compile(tvm.IRModule({"main": lowered}), target=target)
    built["main"](*tensors)
    return [t.numpy() for t in tensors[len(inputs) :]]


def _agree(got: np.ndarray, want: np.ndarray, program: Program, largest: float, what: str) -> None:
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    kinds = {program.dtype, str(got.dtype)} & set(TOLERANCE)
    # a program of float64 that reads float32 computes in float64
    tolerance = max(TOLERANCE[kind] for kind in kinds)
    limit = tolerance * max(1.0, largest)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=limit, err_msg=what)
