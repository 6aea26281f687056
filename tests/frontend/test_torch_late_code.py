# SPDX-License-Identifier: Apache-2.0
"""Graphs whose code is made when they are called compute the same, and PyTorch is afterwards as before."""

from __future__ import annotations

import threading

import pytest
import torch
from torch.fx import GraphModule, symbolic_trace
from uir_tvm.frontend import torch_decompositions
from uir_tvm.frontend.torch_late_code import late_code, with_code


class Twice(torch.nn.Module):
    """A function with an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Any shape."""
        return x * self.factor + 1


def test_a_graph_has_code_when_it_is_called() -> None:
    recompile = GraphModule.recompile
    with late_code():
        inside = symbolic_trace(Twice())
        with pytest.raises(RuntimeError, match="[Cc]ode"):
            assert inside.code
        assert inside(torch.ones(2)).tolist() == [3.0, 3.0]
        assert "factor" in inside.code
        later, never = symbolic_trace(Twice()), symbolic_trace(Twice())
    assert GraphModule.recompile is recompile
    later.graph.lint()
    assert later(torch.zeros(1)).tolist() == [1.0]
    with_code(never)
    assert "factor" in never.code
    assert "factor" in symbolic_trace(Twice()).code


def test_it_is_called_once_for_a_call() -> None:
    """Hooks of a module see one call, of the first too."""
    with late_code():
        module = symbolic_trace(Twice())
    calls: list[int] = []
    module.register_forward_hook(lambda *_: calls.append(1))
    module(torch.ones(1))
    assert calls == [1]


def test_other_threads_have_code_at_once() -> None:
    found: list[str] = []
    with late_code():
        thread = threading.Thread(target=lambda: found.append(symbolic_trace(Twice()).code))
        thread.start()
        thread.join()
    assert "factor" in found[0]


def test_pytorch_is_as_before_an_error() -> None:
    recompile = GraphModule.recompile
    with pytest.raises(KeyError), late_code():
        raise KeyError
    assert GraphModule.recompile is recompile


def test_what_is_decomposed_has_code() -> None:
    """A program of calls that come again and again, which is decomposed by samples."""
    layers = [layer for _ in range(4) for layer in (torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))]
    program = torch.export.export(torch.nn.Sequential(*layers).eval(), (torch.randn(3, 8),))
    made = torch_decompositions.decomposed(program, {})
    x = torch.randn(3, 8)
    torch.testing.assert_close(made.module()(x), program.module()(x))
    assert "return" in made.graph_module.code
