# SPDX-License-Identifier: Apache-2.0
"""The decompositions compute what PyTorch computes, by PyTorch itself."""

from __future__ import annotations

import math

import pytest
import torch
from uir_tvm.frontend import torch_decompositions as ours
from uir_tvm.frontend import torch_functions as functions
from uir_tvm.frontend import torch_indexing as indexing

EDGES = torch.tensor(
    [-torch.inf, -90, -1, -0.5, -3e-5, -1e-7, -1e-30, 0, 1e-30, 1e-7, 3e-5, 0.5, 3, 80, torch.inf]
)


def test_expm1_keeps_its_relative_precision() -> None:
    """Within 8 ULP of fp32 in float64's eyes, from 1e-30 to overflow."""
    torch.testing.assert_close(functions.expm1(EDGES), torch.expm1(EDGES.double()).float(), rtol=1e-6, atol=0)


def test_log1p_keeps_its_relative_precision() -> None:
    domain = EDGES[EDGES >= -0.5]
    torch.testing.assert_close(
        functions.log1p(domain), torch.log1p(domain.double()).float(), rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("kind", ["bool", "float", "least"])
def test_attention_with_masks(kind: str) -> None:
    """A row that sees no key gives zeros; a row of the least finite number is still a row that sees."""
    generator = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(2, 3, 4, 8, generator=generator) for _ in range(3))
    mask = torch.rand(2, 1, 4, 4, generator=generator) > 0.3
    mask[0, 0, 2] = False
    if kind != "bool":
        lowest = -torch.inf if kind == "float" else torch.finfo(torch.float32).min
        mask = torch.where(mask, 0.5, lowest)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, mask)
    torch.testing.assert_close(ours.attention(query, key, value, mask), expected, rtol=1e-5, atol=1e-6)
    assert bool((expected[0, :, 2] == 0).all()) == (kind != "least")


def test_batch_norm_without_weight_and_bias() -> None:
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    mean, variance = torch.tensor([0.5, -1, 0]), torch.tensor([1, 0.1, 4])
    expected = torch.nn.functional.batch_norm(x, mean, variance)
    torch.testing.assert_close(ours.batch_norm(x, None, None, mean, variance, 0.1, 1e-5)[0], expected)


@pytest.mark.parametrize("dim", [None, 1, [0, 2]])
@pytest.mark.parametrize("keepdim", [False, True])
def test_any_and_all(dim: int | list[int] | None, keepdim: bool) -> None:
    x = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(2)) > 0.8
    axes = [0, 1, 2] if dim is None else dim
    assert torch.equal(ours.any_dims(x, dim, keepdim), torch.any(x, axes, keepdim))
    assert torch.equal(ours.all_dims(x, dim, keepdim), torch.all(x, axes, keepdim))


@pytest.mark.parametrize("dtype, error", [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_erfc_keeps_its_relative_precision(dtype: torch.dtype, error: float) -> None:
    """Where 1 - erf has no digit left; the error of float32 is that of exp(-x^2), of a rounded number."""
    x = torch.linspace(0.1, 9, 200, dtype=dtype)
    exact = torch.tensor([math.erfc(value) for value in x.tolist()], dtype=torch.float64)
    assert float(((functions.erfc(x).double() - exact) / exact).abs().max()) < error
    scaled = exact * torch.exp(x.double() ** 2)
    assert float(((functions.erfcx(x).double() - scaled) / scaled).abs().max()) < error


@pytest.mark.parametrize(
    ("shifts", "dims"), [((1, -2), (0, 1)), ((7,), (1,)), ((0,), (0,)), ((5,), ()), ((3, 1), (1, 1))]
)
def test_rolled_pieces(shifts: tuple[int, ...], dims: tuple[int, ...]) -> None:
    """Either way, by more than a dimension has, by nothing, all elements, and one dimension twice."""
    x = torch.arange(15).reshape(3, 5)
    found = indexing.roll(x, shifts, dims)
    torch.testing.assert_close(found, torch.roll(x, shifts, dims))
    assert found.data_ptr() != x.data_ptr()
