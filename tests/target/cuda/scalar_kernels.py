# SPDX-License-Identifier: Apache-2.0
"""Kernels that apply scalar functions as the CUDA printer spells them, and arguments for their corners."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
import tvm_ffi
import uir_tvm  # noqa: F401  (registers the printer)
from uir_tvm.igraph.domain import VALUES
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.igraph.iops_scalar import BINARY, COMPARE, UNARY, evaluate
from uir_tvm.target.cuda import host_model as simt
from uir_tvm.target.cuda.host_model import launch

_function = tvm_ffi.get_global_func("uir.codegen.cuda.scalar_function")
_cast = tvm_ffi.get_global_func("uir.codegen.cuda.scalar_cast")
_stored = tvm_ffi.get_global_func("uir.codegen.cuda.stored_type")
_helpers = tvm_ffi.get_global_func("uir.codegen.cuda.helper_text")

#: Ties, both zeros, the ends of the ranges of fp16, fp8 and the small integers, and what overflows exp.
_CORNERS = (
    *(0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999997, 0.1, -0.1, 7, 100, -100),
    *(127, 127.5, 128, -128, -128.5, -129, 254.5, 255, 255.5, 256, 448, 450, 464, 465, 61439, 61440, 65504),
    *(65519, 65520, 1e-8, -1e-8, 6e-8, 1e-40, 88, 89, -88, -104, 1e10, -1e10, 3e38, -3e38),
    *(np.inf, -np.inf, np.nan),
)
_TABLES = {"unary": UNARY, "binary": BINARY, "compare": COMPARE}
_POWERS = {"float": (2.0, 0.5, -0.5, -1, 3, 0, 2.7, -3), "int": (0, 1, 5, -3), "uint": (0, 1, 5)}
_PARAMS = {"float": (3.0, -0.1), "int": (3, -2), "uint": (3, 200)}


@attrs.frozen
class Call:
    """One function of values of `dtype`, as an expression of ``a[i]`` and ``b[i]``."""

    of: str
    name: str
    dtype: str
    result: str
    text: str
    helpers: tuple[str, ...]
    params: tuple[float, ...] = ()

    def wanted(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What the interpreter gives."""
        if self.of == "cast":
            return VALUES.cast(self.dtype, self.result, self.name or None, a)
        operands = [a] if self.of == "unary" else [a, b]
        return evaluate(_TABLES[self.of][self.name], self.dtype, operands, self.params)

    def __str__(self) -> str:
        return f"{self.of} {self.name} {self.params or ''} of {self.dtype} to {self.result}: {self.text}"


def _call(of: str, name: str, dtype: str, params: Sequence[float] = ()) -> Call:
    made = _function(of, name, dtype, list(params), "a[i]", "b[i]")
    helpers = tuple(str(key) for key in made["helpers"])
    return Call(of, name, dtype, str(made["dtype"]), str(made["text"]), helpers, tuple(params))


def functions(dtype: str) -> Iterator[Call]:
    """Every function that takes the dtype."""
    kind = DTYPES[dtype].kind
    for of, table in _TABLES.items():
        for name, row in table.items():
            if kind not in row.kinds:
                continue
            if of != "unary" or not row.n_params:
                yield _call(of, name, dtype)
                continue
            for value in _POWERS[kind] if name == "pows" else _PARAMS[kind]:
                yield _call(of, name, dtype, [value])


def casts(dtype: str) -> Iterator[Call]:
    """Every cast from the dtype, in every rounding."""
    modes = ("", "rint", "floor", "ceil", "trunc", "round") if DTYPES[dtype].kind == "float" else ("",)
    for result in DTYPES:
        for mode in modes:
            made = _cast(dtype, result, mode, "a[i]")
            helpers = tuple(str(key) for key in made["helpers"])
            yield Call("cast", mode, dtype, result, str(made["text"]), helpers)


def arguments(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of corners and a few random values."""
    rng, stored, kind = np.random.default_rng(0), numpy_of(dtype), DTYPES[dtype].kind
    if kind == "bool":
        values = np.array([False, True])
    elif kind == "float":
        with np.errstate(over="ignore"):
            values = np.concatenate([np.array(_CORNERS), rng.uniform(-4, 4, 12)]).astype(stored)
    else:
        ends = np.iinfo(stored)
        few = [0, 1, 2, 3, 7, 8, 15, 31, 32, 63, 64, ends.max, ends.max - 1, ends.min, ends.min + 1]
        below = [-1, -2, -7, -64] if kind == "int" else []
        random = rng.integers(ends.min, ends.max, 12, dtype=stored, endpoint=True)
        values = np.concatenate([np.array(few + below, dtype=stored), random])
    a, b = np.meshgrid(values, values)
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


def source(calls: Sequence[Call]) -> str:
    """A text with a kernel ``f0``, ``f1``, ... for each call."""
    headers = "".join(f"#include <cuda_{name}.h>\n" for name in ("fp16", "bf16", "fp8"))
    keys = sorted({key for call in calls for key in call.helpers})
    text = f"#include <cstdint>\n{headers}\n{_helpers(keys)}\n"
    for number, call in enumerate(calls):
        operand, result = _stored(call.dtype), _stored(call.result)
        text += (
            f'extern "C" __global__ void f{number}'
            f"(const {operand}* a, const {operand}* b, {result}* y, int n) {{\n"
            f"  for (int i = threadIdx.x; i < n; i += 32) y[i] = {call.text};\n}}\n"
        )
    return text


@functools.cache
def _kernels(dtype: str) -> tuple[tuple[Call, ...], pathlib.Path]:
    """All calls of a dtype, compiled together: reading the headers takes longest."""
    calls = (*functions(dtype), *casts(dtype))
    return calls, simt.compile(source(calls))


def run(dtype: str, *, are_casts: bool) -> Iterator[tuple[Call, np.ndarray, np.ndarray]]:
    """Functions or casts, each with what the host model computes and what the interpreter gives."""
    calls, compiled = _kernels(dtype)
    for number, call in enumerate(calls):
        if (call.of == "cast") != are_casts:
            continue
        a, b = arguments(dtype)
        got = np.zeros(a.shape, numpy_of(call.result))
        launch(compiled, f"f{number}", [a, b, got, len(a)], grid=1, block=32).check()
        yield call, got, call.wanted(a[None], b[None])[0]
