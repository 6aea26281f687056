# SPDX-License-Identifier: Apache-2.0
"""A tensor that a model casts to a narrow float and back is rounded, on every target: torch's numbers."""

from __future__ import annotations

import logging

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from uir_tvm.target.registry import TARGETS

NARROW = (torch.float16, torch.bfloat16)
#: Functions of fp32 are a few ULP apart, sums have another order; a rounding that is lost is 2**-12 at least.
FUNCTIONS = 2e-6


class Rounded(nn.Module):
    """Casts there and back: alone, between operations, beside narrow tensors, of integers, of both dtypes."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor, narrow: Tensor, whole: Tensor) -> tuple[Tensor, ...]:
        rounded = x.to(self.dtype).float()
        other = next(each for each in NARROW if each != self.dtype)
        return (
            rounded,
            rounded * narrow.float(),
            torch.where(x > 0, (x * 3).to(self.dtype), narrow).float(),
            whole.to(self.dtype).float() - narrow.float(),
            x.to(other).to(self.dtype).float(),
            narrow.to(other).float(),
            (narrow.float() * 1.1).to(self.dtype).float(),
            torch.exp(rounded * 0.5),
            rounded[1:].sum(-1),
        )


def inputs(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(33, 70, generator=generator) + 0.5
    x[::3] *= -1
    x[0, :4] = torch.tensor([1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8])  # ties of both dtypes
    x[0, 4:8] = torch.tensor([65519.0, 65520.0, 7e4, -7e4])  # from the second on infinities of float16
    narrow = torch.randn(33, 70, generator=generator).to(dtype)
    narrow[1, 0] = 3e4
    return x, narrow, torch.randint(-40000, 40000, (33, 70), generator=generator, dtype=torch.int32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_casts_there_and_back_round(target: str, dtype: torch.dtype) -> None:
    """All to the bit but functions and sums; no kernel is left to TVM."""
    model, given = Rounded(dtype), inputs(dtype)
    program = uir_tvm.compile(model, target, args=given)
    *exact, exponential, total = zip(program(*given), model(*given), strict=True)
    for found, wanted in exact:
        torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    for found, wanted in (exponential, total):
        torch.testing.assert_close(found, wanted, rtol=FUNCTIONS, atol=0)
    assert not program.report()["fallbacks"]


class OfDoubles(Rounded):
    """A kernel that targets without float64 leave to TVM's own lowering."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * 1.1).to(self.dtype).float()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_kernels_that_are_left_to_tvm_round_too(
    target: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("uir_tvm.pipeline"), "disabled", True)
    model, x = OfDoubles(dtype), torch.randn(9, 31, generator=torch.Generator().manual_seed(1)).double()
    program = uir_tvm.compile(model, target, args=(x,))
    (found,) = program(x) if isinstance(program(x), tuple | list) else (program(x),)
    torch.testing.assert_close(found, model(x), rtol=0, atol=0)
