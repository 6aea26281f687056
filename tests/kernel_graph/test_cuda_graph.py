# SPDX-License-Identifier: Apache-2.0
"""What is captured into a CUDA graph, run with stand-ins for TVM's CUDA runtime; refused without a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from tvm import relax
from uir_tvm.errors import TargetError
from uir_tvm.frontend import from_torch
from uir_tvm.kernel_graph import build, cuda_graph, to_relax, vm_passes

from . import captured as stand_ins
from .captured import GPU, RUN, Graphs, captures, launches, machine_of, outside
from .programs import arguments, assert_close, constant, module, run

op = relax.op
graphs = stand_ins.graphs
SHAPES = {"x": ((4, 16), "float32"), "w": ((16, 24), "float32")}


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


@pytest.mark.parametrize(("inputs", "captured"), [(2, 3), (1, 4)])
def test_a_captured_executable_computes_the_same(graphs: Graphs, inputs: int, captured: int) -> None:
    """All but the first and the last of 6 launches, and where w is no weight its reader."""
    mod = lowered(inputs)
    names = [gvar.name_hint for gvar in mod.functions if "cuda_graph_capture" in gvar.name_hint]
    assert sum(launches(mod, name) for name in names) == captured
    assert launches(mod, "main") == 6 - captured
    machine = relax.VirtualMachine(relax.build(mod, "llvm", relax_pipeline=None), tvm.cpu())
    held = [tvm.runtime.tensor(each) for each in arguments(SHAPES, 0)]
    for seed in (1, 2):
        args = arguments(SHAPES, seed)
        if inputs < len(args):  # the weight stays where it is, and what it is
            args[1] = held[1].numpy()
        given = [tvm.runtime.tensor(each) for each in args[:inputs]] + held[inputs:]
        got = machine["main"](*given).numpy()
        assert_close([got], run(program(), args))
    assert graphs.calls.count("alloc") == 1
    assert len([call for call in graphs.calls if call.startswith("run")]) == 2 * len(names)
    assert len(graphs.captured) == len(names)
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


def token(fixed: bool = True) -> tuple[tvm.IRModule, tvm.IRModule]:
    """Its program lowered plainly, and captured: with memory that stays where it is, or as if all did."""
    program = torch.export.export(Token().eval(), (torch.randn(1, 16), torch.tensor([3])))
    graph = to_relax(build(from_torch(program)))
    held = cuda_graph.with_fixed_memory(graph, 2) if fixed else to_relax(build(from_torch(program)))
    if not fixed:
        held["main"] = held["main"].with_attr(cuda_graph.INPUTS, 0)
    plain = vm_passes(None)(graph)
    with tvm.transform.PassContext(config={cuda_graph.OPTION: True}):
        return plain, vm_passes(tvm.target.Target(GPU))(held)


def test_a_token_is_one_graph() -> None:
    """Its launches, the write of state and what reads it are captured; copies of what differs are left."""
    plain, made = token()
    (name,) = captures(made)
    assert launches(made, name) == launches(plain, "main") >= 5
    assert "update" in made[name].script()
    assert set(outside(made)) == {cuda_graph.COPY, cuda_graph.BY_ADDRESS}


def test_a_kernel_of_the_host_is_refused() -> None:
    """Where it would be captured; elsewhere it may run there."""
    _, made = token()
    kernel = next(gvar.name_hint for gvar in made.functions if "update" in gvar.name_hint)
    with pytest.raises(TargetError, match=f"kernel {kernel} cannot be captured"):
        cuda_graph.refuse_host(made, {kernel: "its reason"})
    cuda_graph.refuse_host(made, {"another": "its reason"})


def test_replays_follow_inputs_and_state(graphs: Graphs) -> None:
    """Inputs lie elsewhere at each call; another state is captured once, and each goes on with its own."""
    plain, made = (machine_of(mod) for mod in token())
    rng = np.random.default_rng(0)
    states = [[tvm.runtime.tensor(np.zeros((8, 16), np.float32)) for _ in range(2)] for _ in range(2)]
    results = []
    for step in range(6):
        args = rng.standard_normal((1, 16)).astype(np.float32), np.array([step], np.int64)
        wanted, got = (
            main(*map(tvm.runtime.tensor, args), state)
            for main, state in zip((plain, made), states[step % 2], strict=True)
        )
        results.append((got, wanted.numpy()))
    # results are memory of their own: later calls leave them
    for got, want in results:
        np.testing.assert_array_equal(got.numpy(), want)
    for mine, other in states:
        np.testing.assert_array_equal(mine.numpy(), other.numpy())
    assert len(graphs.captured) == 2


@pytest.mark.parametrize("fixed", [True, False], ids=["another state", "an input that moved"])
def test_planted_faults_of_replays_are_found(graphs: Graphs, fixed: bool, monkeypatch: Any) -> None:
    """Looked up by number alone, a replay has the addresses of another call, and computes something else."""
    monkeypatch.setattr(cuda_graph, "BY_ADDRESS", RUN)
    mains = [machine_of(mod) for mod in token(fixed)]
    rng, differ = np.random.default_rng(0), list[bool]()
    states = [[tvm.runtime.tensor(np.zeros((8, 16), np.float32)) for _ in range(2)] for _ in range(2)]
    given = []
    for step in range(4):
        args = rng.standard_normal((1, 16)).astype(np.float32), np.array([step], np.int64)
        # kept, so that none lies where an earlier one did
        given.append([[tvm.runtime.tensor(each) for each in args] for _ in mains])
        pair = [
            main(*tensors, state).numpy()
            for main, tensors, state in zip(mains, given[-1], states[step % 2 * fixed], strict=True)
        ]
        differ.append(not np.array_equal(*pair))
    assert not differ[0] and any(differ)
