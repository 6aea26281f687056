# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for TVM's functions that capture CUDA graphs, and what a module has captured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax

GPU = {"kind": "cuda", "keys": ["uir", "cuda", "gpu"], "arch": "sm_90a"}
RUN, ALLOC = "vm.builtin.cuda_graph.run_or_capture", "vm.builtin.cuda_graph.get_cached_alloc"


class Graphs:
    """TVM's two functions, without CUDA: storages are kept, and a replay uses what was captured.

    A function is captured with its arguments when it is first run under a number and a place (TVM's key), and
    replays run it with those, whatever they are given, as a CUDA graph does.
    """

    def __init__(self) -> None:
        self.kept: dict[int, Any] = {}
        self.captured: dict[Any, Any] = {}
        self.calls: list[str] = []
        self._invoke = tvm_ffi.get_global_func("vm.builtin.invoke_closure")

    def get_cached_alloc(self, context: Any, function: Any, index: int) -> Any:
        if index not in self.kept:
            self.calls.append("alloc")
            self.kept[index] = self._invoke(context, function)
        return self.kept[index]

    def run_or_capture(self, context: Any, function: Any, args: Any, index: int, place: Any = ()) -> Any:
        key = index, tuple(place)
        if key not in self.captured:
            self.calls.append(f"capture {index}")
            self.captured[key] = args, [address(arg) for arg in args]
        self.calls.append(f"run {index}")
        held, addresses = self.captured[key]
        assert [address(arg) for arg in held] == addresses, "a captured tensor has moved"
        return self._invoke(context, function, *held)


def address(value: Any) -> int:
    """Where a tensor lies; 0: it is none."""
    return int(np.from_dlpack(value).ctypes.data) if isinstance(value, tvm.runtime.Tensor) else 0


@pytest.fixture
def graphs() -> Iterator[Graphs]:
    """They, in the place of TVM's."""
    if tvm_ffi.get_global_func(RUN, allow_missing=True) is not None:
        pytest.skip("TVM's CUDA runtime is loaded")
    made = Graphs()
    tvm_ffi.register_global_func(ALLOC, made.get_cached_alloc)
    tvm_ffi.register_global_func(RUN, made.run_or_capture)
    yield made
    tvm_ffi.registry.remove_global_func(ALLOC)
    tvm_ffi.registry.remove_global_func(RUN)


def launches(mod: tvm.IRModule, name: str) -> int:
    """Kernels and library operators that a function calls."""
    count = 0

    def visit(expr: Any) -> None:
        nonlocal count
        if isinstance(expr, tvm.ir.Call):
            kernel = isinstance(expr.op, tvm.ir.GlobalVar)
            library = isinstance(expr.op, relax.ExternFunc) and str(expr.op.global_symbol).startswith("uir.")
            count += kernel or library

    for gvar, function in mod.functions.items():
        if gvar.name_hint == name:
            relax.analysis.post_order_visit(function, visit)
    return count


def captures(mod: tvm.IRModule) -> list[str]:
    """The functions that are captured."""
    return [gvar.name_hint for gvar in mod.functions if "cuda_graph_capture" in gvar.name_hint]


def outside(mod: tvm.IRModule) -> list[str]:
    """What ``main`` calls by itself, in order, but for what belongs to TVM's machine."""
    found: list[str] = []

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            found.append(str(expr.op.name_hint))
        elif isinstance(expr, relax.ExternFunc) and str(expr.global_symbol).startswith("uir."):
            found.append(str(expr.global_symbol))

    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def machine_of(mod: tvm.IRModule) -> Any:
    return relax.VirtualMachine(relax.build(mod, "llvm", relax_pipeline=None), tvm.cpu())["main"]
