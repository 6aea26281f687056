# SPDX-License-Identifier: Apache-2.0
"""What architectures of public libraries need of the importer, each in the smallest module that shows it."""

from __future__ import annotations

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from torch.export import Dim, export
from uir_tvm.errors import FrontendError, TorchExportError
from uir_tvm.frontend import torch_search
from uir_tvm.frontend.torch import from_torch


class Heads(nn.Module):
    """A view of an attention's heads side by side, which the memory order of its query allows."""

    def forward(self, x: Tensor) -> Tensor:
        heads = x.view(1, 6, 2, 4).transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).view(1, 6, 8)


class Turned(nn.Module):
    """Complex constants: a buffer, and one that is computed of constants alone."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(4), torch.arange(4.0)))
        self.register_buffer("bias", torch.tensor([0.5, -1.0, 2.0, 4.0]))

    def forward(self, x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.reshape(3, 4, 2))
        return torch.view_as_real(pairs * self.turns * self.turns.conj()) + self.bias.reshape(4, 1)


class Router(nn.Module):
    """Experts of tokens, sorted and counted: a sort of a strided part of another sort's result."""

    def forward(self, scores: Tensor) -> tuple[Tensor, ...]:
        chosen = torch.topk(scores.softmax(-1), 2)[1]
        experts, order = torch.sort(chosen.reshape(-1), stable=True)
        counts = torch.histc(experts.float(), bins=4, min=0, max=3)
        return experts, order, torch.cumsum(counts, 0, dtype=torch.int32)


@pytest.mark.parametrize(
    ("module", "shape"), [(Heads(), (1, 6, 8)), (Turned(), (3, 8)), (Router(), (8, 4))], ids=lambda v: ""
)
def test_is_right(module: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    exe = uir_tvm.compile(module, args=(x,))
    torch.testing.assert_close(exe(x), module(x), rtol=1e-5, atol=1e-5)


def test_a_program_with_complex_constants_stays_the_callers() -> None:
    """The importer changes its own copy of a program's constants."""
    x = torch.randn(3, 8)
    program = export(Turned(), (x,))
    from_torch(program, strict=False)
    torch.testing.assert_close(program.module()(x), Turned()(x))


@pytest.mark.parametrize(("bins", "low", "high"), [(4, 0, 3), (7, -1.0, 1.5), (1, -2.0, 2.0)])
def test_histc_counts_as_pytorch(bins: int, low: float, high: float) -> None:
    """Numbers at the ends of bins included, and such as lie outside."""
    x = torch.cat([torch.randn(200, generator=torch.Generator().manual_seed(2)) * 2, torch.arange(-2.0, 4.0)])
    assert torch.equal(torch_search.histc(x, bins, low, high), torch.histc(x, bins, low, high))
    assert torch_search.histc(x, bins) is NotImplemented  # its bounds depend on data


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1


def test_what_export_refuses_has_its_own_error() -> None:
    with pytest.raises(TorchExportError, match=r"torch\.export cannot export Branches"):
        uir_tvm.compile(Branches(), args=(torch.ones(3),))


class Fours(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, 4) + 1


def test_open_sizes_that_export_refuses_are_told_with_what_it_suggests() -> None:
    with pytest.raises(TorchExportError) as raised:
        uir_tvm.compile(Fours(), args=(torch.ones(8),), dynamic_shapes=({0: Dim("n", min=2, max=64)},))
    assert "% 4) == 0" in raised.value.need and "n = 4*_n" in raised.value.remedy


def test_a_function_that_fails_while_operators_are_taken_apart() -> None:
    def fails(x: Tensor) -> Tensor:
        raise ValueError("no such thing")

    with pytest.raises(FrontendError, match="take the program's operators apart: .*no such thing"):
        uir_tvm.compile(nn.Tanh(), args=(torch.ones(3),), converters={"tanh.default": uir_tvm.InTorch(fails)})
