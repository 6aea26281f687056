# SPDX-License-Identifier: Apache-2.0
"""Programs that are decomposed with less preparation are the same, and PyTorch is afterwards as before."""

from __future__ import annotations

import threading

import pytest
import torch
from torch._export import utils
from torch._ops import OperatorBase
from uir_tvm.frontend import torch_dispatch
from uir_tvm.frontend.torch_decompositions import decomposition_table
from uir_tvm.frontend.torch_dispatch import prepared_once


class Mixed(torch.nn.Module):
    """Composite operators, some of which stay whole, and others with decompositions of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (rows, 8) -> (rows,)."""
        y = torch.nn.functional.silu(self.norm(self.linear(x)))
        y = torch.nn.functional.scaled_dot_product_attention(y[None], y[None], y[None])[0]
        return torch.softmax(y, -1).matmul(x.T).any(-1)


def _text(program: torch.export.ExportedProgram) -> str:
    return str(program.run_decompositions(decomposition_table()).graph)


def test_same_programs() -> None:
    """Node by node, with kernels of operators and their caches as they were."""
    program = torch.export.export(Mixed().eval(), (torch.randn(4, 8),))
    operators = [torch.ops.aten.softmax.int, torch.ops.aten.linear.default, torch.ops.aten.any.dim]
    kernels = [dict(each.py_kernels) for each in operators]
    before = _text(program)
    with prepared_once():
        assert _text(program) == before
    assert [dict(each.py_kernels) for each in operators] == kernels
    assert "aten.linear.default" in before and "aten.softmax.int" not in before


def test_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dispatcher is looked through once for a program, and PyTorch's functions come back."""
    looks = []
    look = getattr(utils, torch_dispatch.LOOK)
    monkeypatch.setattr(utils, torch_dispatch.LOOK, lambda: looks.append(look()))
    watched, gives = getattr(utils, torch_dispatch.LOOK), OperatorBase.py_impl
    program = torch.export.export(torch.nn.ReLU(), (torch.randn(4),))
    looks.clear()
    with pytest.raises(KeyError), prepared_once():
        _text(program)
        raise KeyError
    assert len(looks) == 1
    assert getattr(utils, torch_dispatch.LOOK) is watched and OperatorBase.py_impl is gives


def test_refuses_as_pytorch() -> None:
    """A second kernel for one key is refused inside as outside."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    operator = torch.ops.aten.add.Tensor
    with prepared_once():
        kept = dict(operator.py_kernels)
        try:
            operator.py_kernels[key] = abs
            with pytest.raises(RuntimeError, match="override"):
                operator.py_impl(key)(abs)
        finally:
            operator.py_kernels.clear()
            operator.py_kernels.update(kept)


def test_threads_leave_pytorch_as_it_was() -> None:
    """A thread that comes while another is inside waits: each puts PyTorch's own function back."""
    gives = OperatorBase.py_impl
    inside, leave, came = threading.Event(), threading.Event(), threading.Event()

    def first() -> None:
        with prepared_once():
            inside.set()
            leave.wait(10)

    def second() -> None:
        inside.wait(10)
        with prepared_once():
            came.set()

    threads = [threading.Thread(target=each) for each in (first, second)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    assert not came.wait(0.05)
    leave.set()
    for thread in threads:
        thread.join(10)
    assert came.is_set() and OperatorBase.py_impl is gives
