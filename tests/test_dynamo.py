# SPDX-License-Identifier: Apache-2.0
"""torch.compile with the backend uir: which graphs are compiled, which are left to PyTorch, their results."""

from __future__ import annotations

import copy
import importlib.metadata
import logging
from collections.abc import Iterator

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from uir_tvm.errors import UnsupportedOperatorError

X = torch.linspace(-2, 2, 24).reshape(3, 8)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


def test_the_entry_point_names_the_backend() -> None:
    (entry,) = importlib.metadata.entry_points(group="torch_dynamo_backends", name="uir")
    model = mlp()
    with torch.no_grad():
        compiled = torch.compile(model, backend=entry.load(), options={"target": "uir-cpu", "strict": True})
        torch.testing.assert_close(compiled(X), model(X), rtol=1e-5, atol=1e-5)


def test_parameters_are_arguments_and_shapes_make_executables() -> None:
    model, backend = mlp(), uir_tvm.TorchBackend(strict=True)
    with torch.no_grad():
        compiled = torch.compile(model, backend=backend)
        for rows in (3, 2, 1, 3):
            torch.testing.assert_close(compiled(X[:rows]), model(X[:rows]), rtol=1e-5, atol=1e-5)
        count = len(backend.executables)
        assert count == len({str(exe.info.inputs) for exe in backend.executables}) <= 4
        model[0].weight.mul_(2)
        torch.testing.assert_close(compiled(X), model(X), rtol=1e-5, atol=1e-5)
        assert len(backend.executables) == count and not backend.eager


def test_symbolic_graphs_compile_for_the_sizes_of_each_call() -> None:
    class Halves(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(x.shape[0] // 2, 2, 8).sum(1) * x.shape[0]

    model, backend = Halves(), uir_tvm.TorchBackend(strict=True)
    with torch.no_grad():
        compiled = torch.compile(model, backend=backend, dynamic=True)
        for rows in (4, 2, 4):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)
    assert len(backend.executables) == 2 and not backend.eager


def test_frozen_parameters_are_constants() -> None:
    model, backend = mlp(), uir_tvm.TorchBackend(strict=True, freeze=True)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, backend=backend)(X), model(X), rtol=1e-5, atol=1e-5)
    (exe,) = backend.executables
    assert [spec.shape for spec in exe.info.inputs] == [(3, 8)]


def test_training_compiles_forward_and_backward() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 8)
    ours = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 4))
    theirs, backend = copy.deepcopy(ours), uir_tvm.TorchBackend(strict=True)
    compiled = torch.compile(ours, backend=backend)
    for model in (compiled, theirs):
        model(x).square().sum().backward()
    assert len(backend.executables) == 2
    for got, want in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(got.grad, want.grad, rtol=1e-4, atol=1e-4)
    for got, want in zip(ours.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_changed_arguments_and_views_are_as_pytorch_has_them() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y.add_(1)
        return x.t(), x * y

    backend, y = uir_tvm.TorchBackend(strict=True), torch.zeros(8)
    with torch.no_grad():
        turned, product = torch.compile(function, backend=backend)(X, y)
    torch.testing.assert_close(y, torch.ones(8))
    torch.testing.assert_close(product, X)
    assert turned.data_ptr() == X.data_ptr() and len(backend.executables) == 1


def test_a_graph_that_is_not_taken_runs_in_pytorch(caplog: pytest.LogCaptureFixture) -> None:
    backend = uir_tvm.TorchBackend()
    compiled = torch.compile(lambda x: torch.complex(x, x), backend=backend)
    with torch.no_grad(), caplog.at_level(logging.WARNING, "uir_tvm.dynamo"):
        for rows in (3, 2):
            torch.testing.assert_close(compiled(X[:rows]), torch.complex(X[:rows], X[:rows]))
    assert backend.eager and "is complex" in backend.eager[0]
    lines = [record.getMessage() for record in caplog.records if "left to PyTorch" in record.getMessage()]
    assert 1 <= len(lines) <= 2 and "is complex" in lines[0]


def test_strict_refuses_it() -> None:
    compiled = torch.compile(lambda x: torch.rand_like(x), backend=uir_tvm.TorchBackend(strict=True))
    with torch.no_grad(), pytest.raises(UnsupportedOperatorError, match="rand_like.default"):
        compiled(X)


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(Exception, match="no option speed"):
        torch.compile(mlp(), backend=uir_tvm.dynamo.backend, options={"speed": 1})(X)
