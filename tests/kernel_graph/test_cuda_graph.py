# SPDX-License-Identifier: Apache-2.0
"""What is captured into a CUDA graph, run with stand-ins for TVM's CUDA runtime; refused without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
import uir_tvm
from tvm import relax
from uir_tvm.errors import TargetError
from uir_tvm.frontend import from_torch
from uir_tvm.kernel_graph import build, cuda_graph, to_relax, vm_passes

from .programs import arguments, assert_close, constant, module, run

op = relax.op
SHAPES = {"x": ((4, 16), "float32"), "w": ((16, 24), "float32")}
GPU = {"kind": "cuda", "keys": ["uir", "cuda", "gpu"], "arch": "sm_90a"}
RUN, ALLOC = "vm.builtin.cuda_graph.run_or_capture", "vm.builtin.cuda_graph.get_cached_alloc"


def program() -> tvm.IRModule:
    """Products and softmaxes in turn; the second product reads a parameter that may be a weight."""

    def body(emit: Any, x: Any, w: Any) -> Any:
        y = emit(op.nn.softmax(emit(op.matmul(x, constant(16, 16)))))
        y = emit(op.nn.softmax(emit(op.matmul(y, w))))
        y = emit(op.nn.softmax(emit(op.matmul(y, constant(24, 16, seed=3)))))
        return emit(op.nn.softmax(y))

    return module(SHAPES, body)


def lowered(inputs: int) -> tvm.IRModule:
    graph = to_relax(build(program()))
    # the other parameters are weights, which never move: kernels that read them are captured
    graph["main"] = graph["main"].with_attr("num_input", inputs)
    with tvm.transform.PassContext(config={cuda_graph.OPTION: True}):
        return vm_passes(tvm.target.Target(GPU))(graph)


@pytest.fixture
def runtime() -> Iterator[list[str]]:
    """TVM's two functions, without CUDA: storages are kept, captured functions run each time."""
    if tvm_ffi.get_global_func(RUN, allow_missing=True) is not None:
        pytest.skip("TVM's CUDA runtime is loaded")
    invoke = tvm_ffi.get_global_func("vm.builtin.invoke_closure")
    kept: dict[int, Any] = {}
    calls: list[str] = []

    def get_cached_alloc(context: Any, function: Any, index: int) -> Any:
        if index not in kept:
            calls.append("alloc")
            kept[index] = invoke(context, function)
        return kept[index]

    def run_or_capture(context: Any, function: Any, args: Any, index: int, *_: Any) -> Any:
        calls.append(f"run {index}")
        return invoke(context, function, *args)

    tvm_ffi.register_global_func(ALLOC, get_cached_alloc)
    tvm_ffi.register_global_func(RUN, run_or_capture)
    yield calls
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


@pytest.mark.parametrize(("inputs", "captured"), [(2, 3), (1, 4)])
def test_a_captured_executable_computes_the_same(runtime: list[str], inputs: int, captured: int) -> None:
    """All but the first and the last of 6 launches, and where w is no weight its reader."""
    mod = lowered(inputs)
    names = [gvar.name_hint for gvar in mod.functions if "cuda_graph_capture" in gvar.name_hint]
    assert sum(launches(mod, name) for name in names) == captured
    assert launches(mod, "main") == 6 - captured
    machine = relax.VirtualMachine(relax.build(mod, "llvm", relax_pipeline=None), tvm.cpu())
    for seed in (1, 2):
        args = arguments(SHAPES, seed)
        got = machine["main"](*map(tvm.runtime.tensor, args)).numpy()
        assert_close([got], run(program(), args))
    assert runtime.count("alloc") == 1
    assert len(runtime) - 1 == 2 * len(names)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("kind", ["ext_dev", "llvm", None])
def test_refused_without_a_gpu(kind: str | None) -> None:
    """The host model and the CPU have no stream to capture; nothing happens where it is not asked for."""
    target = None if kind is None else tvm.target.Target({"kind": kind, "keys": ["uir", "cuda"]})
    graph = to_relax(build(program()))
    assert not [g for g in vm_passes(target)(graph).functions if "capture" in g.name_hint]
    with tvm.transform.PassContext(config={cuda_graph.OPTION: True}):
        with pytest.raises(TargetError, match="CUDA graphs cannot be captured"):
            vm_passes(target)(graph)


def test_compile_refuses_on_the_host_model() -> None:
    """``CompileOptions.cuda_graph`` is the same question."""
    with pytest.raises(TargetError, match="need:   a GPU"):
        uir_tvm.compile(program(), "uir-cpu", options=uir_tvm.CompileOptions(cuda_graph=True))


class Token(torch.nn.Module):
    """One token of a layer with state: what it writes there is read by all later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
        self.register_buffer("kept", torch.zeros(8, 16))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = torch.softmax(self.inner(torch.softmax(x, -1)), -1)
        self.kept.index_copy_(0, position, x)
        weights = torch.softmax(x @ self.kept.T, -1)
        return torch.softmax(self.outer(torch.softmax(weights @ self.kept, -1)), -1)


def test_state_cuts_what_is_captured() -> None:
    """Before and after it is written launches are captured; the write, and what reads it, are apart."""
    program = torch.export.export(Token().eval(), (torch.randn(1, 16), torch.tensor([3])))
    graph = to_relax(build(from_torch(program)))
    with tvm.transform.PassContext(config={cuda_graph.OPTION: True}):
        mod = vm_passes(tvm.target.Target(GPU))(graph)
    names = [gvar.name_hint for gvar in mod.functions if "cuda_graph_capture" in gvar.name_hint]
    assert len(names) == 2 and all(launches(mod, name) for name in names)
    text = mod["main"].script()
    assert "update" in text and not any("update" in mod[name].script() for name in names)
