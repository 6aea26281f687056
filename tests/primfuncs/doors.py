# SPDX-License-Identifier: Apache-2.0
"""A PrimFunc compiled at a door, run, and held against TVM's own LLVM lowering of it."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import tvm
import uir_tvm
from tvm import tirx
from tvm_ffi.structural import structural_walk
from uir_tvm import pipeline
from uir_tvm.options import CompileOptions
from uir_tvm.target import registry

from tests.stock import stock

from .structure import Instance

#: Largest difference relative to the largest value: sums in another order, and in half precision values that
#: one side keeps in fp32.
TOLERANCE = {"float32": 2e-5, "float16": 8e-3}
#: What counts as no fault (`Outcome.state`): the kernel ran, through an iGraph or on TVM's own lowering.
GOOD = ("right", "fallback")


@attrs.frozen
class Outcome:
    """What became of one instance on a target at a door.

    Attributes
    ----------
    state : ``right``; ``fallback`` (right, by TVM's own lowering); ``wrong``; ``raised``.
    detail : the reason of a fall-back, what differs, or the error.
    """

    structure: str
    target: str
    door: str
    state: str
    detail: str
    seconds: float


@functools.cache
def _built(instance: Instance) -> Any:
    return stock(instance.function())["main"]


@functools.cache
def _reference(instance: Instance, seed: int) -> tuple[np.ndarray, ...]:
    tensors = [tvm.runtime.tensor(array) for array in instance.arguments(instance.function(), seed)]
    _built(instance)(*tensors)
    return tuple(tensor.numpy() for tensor in tensors)


def _by_compile(func: tirx.PrimFunc, target: str, runs: Sequence[list[np.ndarray]]) -> tuple[list, str]:
    """What `uir_tvm.compile` gives: every array after the call."""
    exe = uir_tvm.compile(func, target, options=CompileOptions(device=_place(target)))
    names = [str(param.name) for param in func.params]
    found = []
    for arrays in runs:
        named = dict(zip(names, arrays, strict=True))
        given = {spec.name: named[spec.name].copy() for spec in exe.info.inputs}
        before = {name: array.copy() for name, array in given.items()}
        result = exe(*given.values())
        for name, array in given.items():
            np.testing.assert_array_equal(array, before[name], err_msg=f"the call wrote the caller's {name}")
        results = result if isinstance(result, tuple) else (result,)
        after = dict(zip(_stored(func), results, strict=True))
        found.append([after.get(name, named[name]) for name in names])
    return found, next((kernel.fallback for kernel in exe.info.kernels if kernel.fallback), "")


def _stored(func: tirx.PrimFunc) -> list[str]:
    """The parameters that a function stores to, in their order."""
    found: list[tirx.Var] = []
    structural_walk(func.body, [(tirx.BufferStore, lambda store: found.append(store.buffer))])
    return [str(param.name) for param in func.params if param in found]


def _by_tvm(func: tirx.PrimFunc, target: str, runs: Sequence[list[np.ndarray]]) -> tuple[list, str]:
    """What ``tvm.compile`` gives: every array after the call."""
    spec = registry.get(target)
    place = spec.place(_place(target))
    with pipeline.recording() as records:
        name = str(func.attrs["global_symbol"])
        built = tvm.compile(tvm.IRModule({name: func}), target=spec.target(None, place.name))
    there = tvm.device(place.device)
    found = []
    for arrays in runs:
        tensors = [tvm.runtime.tensor(array, there) for array in arrays]
        built[name](*tensors)
        found.append([tensor.numpy() for tensor in tensors])
    return found, next((record.fallback for record in records.values() if record.fallback), "")


DOORS: Mapping[str, Callable] = {"uir_tvm.compile": _by_compile, "tvm.compile": _by_tvm}


def _place(target: str) -> str:
    return "cpu" if target == "uir-cpu" else "model"


def attempt(instance: Instance, target: str, door: str, seeds: Sequence[int] = (0, 1)) -> Outcome:
    """Compile an instance for a target at a door, run it once for each seed, and compare."""
    start = time.perf_counter()
    func = instance.function()

    def outcome(state: str, detail: str = "") -> Outcome:
        return Outcome(instance.name, target, door, state, detail, time.perf_counter() - start)

    runs = [instance.arguments(func, seed) for seed in seeds]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, fallback = DOORS[door](func, target, runs)
    except Exception as error:  # whatever it is, it is what the user would see
        return outcome("raised", f"{type(error).__name__}: {str(error).strip()[:600]}")
    for seed, arrays in zip(seeds, found, strict=True):
        for param, got, want in zip(func.params, arrays, _reference(instance, seed), strict=True):
            why = difference(got, want)
            if why:
                return outcome("wrong", f"{param.name}, seed {seed}: {why}")
    return outcome("fallback", fallback) if fallback else outcome("right")


def difference(got: np.ndarray, want: np.ndarray) -> str:
    """How two arrays differ; empty where they do not."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind not in "iub":
        with np.errstate(all="ignore"):
            a, b = got.astype(np.float64), want.astype(np.float64)
        finite = np.abs(b[np.isfinite(b)])
        limit = TOLERANCE[str(want.dtype)] * max(1.0, float(finite.max(initial=0)))
        bad = ~np.isclose(a, b, rtol=0, atol=limit, equal_nan=True)
    else:
        bad = got != want
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements, first {at}: {got[at]} instead of {want[at]}"
