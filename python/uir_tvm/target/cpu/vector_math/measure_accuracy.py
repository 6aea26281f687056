# SPDX-License-Identifier: Apache-2.0
"""Measure the functions: error against float64 over the bit patterns of float32, and time per element."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import tvm
from tvm import tirx
from tvm.ir import Expr

from ....hardware import host_cpu
from .ops import avx512, bind_in_cells, binding

Reference = Callable[..., np.ndarray]

_CHUNK = 1 << 18


class Worst(NamedTuple):
    """The largest error met, in ULP, and where."""

    ulp: float
    x: float
    got: float
    want: float


def host_target() -> tvm.target.Target:
    """TVM's LLVM target for the processor of this machine."""
    return tvm.target.Target({"kind": "llvm", "mcpu": host_cpu.mcpu()})


def build_loop(
    function: Callable[..., Expr],
    size: int,
    lanes: int = 16,
    inputs: int = 1,
    dtype: str = "float32",
    vectors: bool = True,
) -> tvm.runtime.Module:
    """Compile ``out[i] = function(in0[i], ...)`` over ``size`` elements, ``lanes`` at a time.

    Parameters
    ----------
    vectors : bool
        Whether the function sees vectors and its values are held in cells, as in the kernels of uir-cpu, with
        the instructions of this machine;
        otherwise it sees scalars in a vectorised loop and binds them by ``Let``.

    Returns
    -------
    tvm.runtime.Module
        With the function ``main(in0, ..., out)``.
    """
    sources = [tirx.decl_buffer((size,), dtype, f"in{k}") for k in range(inputs)]
    out = tirx.decl_buffer((size,), dtype, "out")
    outer, lane = tirx.Var("i", "int32"), tirx.Var("lane", "int32")
    index = outer * lanes + lane
    if vectors:
        index = tirx.Ramp(outer * lanes, 1, lanes) if lanes > 1 else outer
    statements: list[tirx.Stmt] = []
    wide = vectors and "avx512f" in host_cpu.cpu_flags()
    with binding(bind_in_cells(statements) if vectors else None), avx512(wide):
        result = function(*(tirx.BufferLoad(s, [index]) for s in sources))
    store = tirx.BufferStore(out, result, [index])
    body = tirx.SeqStmt([*statements, store]) if statements else store
    if not vectors:
        body = tirx.For(lane, 0, lanes, tirx.ForKind.VECTORIZED, body)
    body = tirx.For(outer, 0, size // lanes, tirx.ForKind.SERIAL, body)
    main = tirx.PrimFunc([*sources, out], body).with_attr({"global_symbol": "main", "tirx.noalias": True})
    return tvm.build(tvm.IRModule({"main": main}), target=host_target())


def ulp_error(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Error of float32 results in units in the last place of the float32 nearest to the float64 reference.

    An infinity counts as 2**128, the number after the largest, so that overflow too early or late shows.
    A NaN where none is wanted, or the reverse, is an infinite error.
    """
    value, wanted = (np.clip(v.astype(np.float64), -(2.0**128), 2.0**128) for v in (got, want))
    exponent = np.maximum(np.frexp(wanted)[1] - 1, -126)
    error = np.abs(value - wanted) / np.exp2(exponent - 23.0)
    error[np.isnan(want)] = 0.0
    error[np.isnan(got) != np.isnan(want)] = np.inf
    return error


def patterns(stride: int, low: float = 0.0, high: float = float("nan")) -> Iterator[np.ndarray]:
    """Every ``stride``-th float32, of either sign, with a magnitude from ``low`` to ``high``, in chunks.

    By default all 2**32 bit patterns, NaN included.
    """
    first = int(np.float32(low).view(np.uint32))
    last = 0x7FFFFFFF if np.isnan(high) else int(np.float32(high).view(np.uint32))
    for sign in (0, 1 << 31):
        for start in range(first, last + 1, stride * _CHUNK):
            stop = min(start + stride * _CHUNK, last + 1)
            yield (np.arange(start, stop, stride, dtype=np.uint32) | np.uint32(sign)).view(np.float32)


def measure_error(
    function: Callable[[Expr], Expr],
    reference: Reference,
    stride: int,
    low: float = 0.0,
    high: float = float("nan"),
) -> Worst:
    """Largest error of ``function`` over the float32 of `patterns`."""
    main = build_loop(function, _CHUNK)["main"]
    source, out = (tvm.runtime.tensor(np.zeros(_CHUNK, np.float32)) for _ in range(2))
    worst = Worst(0.0, 0.0, 0.0, 0.0)
    with np.errstate(all="ignore"):
        for x in patterns(stride, low, high):
            source.copyfrom(np.resize(x, _CHUNK))
            main(source, out)
            got, want = out.numpy()[: len(x)], reference(x.astype(np.float64))
            error = ulp_error(got, want)
            at = int(error.argmax())
            if error[at] > worst.ulp:
                worst = Worst(*(float(v[at]) for v in (error, x, got, want)))
    return worst


def nanoseconds_per_element(function: Callable[[Expr], Expr], size: int = 4096) -> float:
    """Best of some runs on one core, input and output in the first-level cache; x uniform in (0.01, 5)."""
    main = build_loop(function, size)["main"]
    x = np.random.default_rng(0).uniform(0.01, 5, size).astype(np.float32)
    return fastest(lambda source, out: main(source, out), tvm.runtime.tensor(x), tvm.runtime.tensor(x)) / size


def fastest(call: Callable[..., object], *args: object, repeats: int = 30, loops: int = 100) -> float:
    """Nanoseconds that the quickest of ``repeats`` rounds of ``loops`` calls took, per call."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(loops):
            call(*args)
        best = min(best, (time.perf_counter_ns() - start) / loops)
    return best


def sigmoid_reference(x: np.ndarray) -> np.ndarray:
    """Logistic function in float64, without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def erf_reference(x: np.ndarray) -> np.ndarray:
    """Error function in float64."""
    from scipy.special import erf  # only measuring needs scipy

    return erf(x)


#: float64 references of the functions of one argument.
REFERENCES: dict[str, Reference] = {
    "cos": np.cos,
    "erf": erf_reference,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": sigmoid_reference,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tanh": np.tanh,
}
