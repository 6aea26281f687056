# SPDX-License-Identifier: Apache-2.0
"""``uir::dequantize`` computes what a packing means, and the import makes the quantised tensor of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tvm
from tvm import relax
from uir_tvm.errors import QuantizationError
from uir_tvm.frontend import from_torch
from uir_tvm.frontend.torch_quantized import dequantize
from uir_tvm.quantized import Packing, dequantized
from uir_tvm.quantized_calls import is_dequantize, packing_of

PACKINGS = [
    Packing(4, 32, 8, "float16"),
    Packing(4, 32, 0, "float16", True),
    Packing(8, 16, 32, "float32"),
    Packing(8, 32, 128, "float16", True),
]


def _parts(packing: Packing, rows: int = 24, columns: int = 64) -> list[torch.Tensor | None]:
    rng = np.random.default_rng(2)
    packed = rng.integers(0, 256, packing.packed_shape(rows, columns), np.uint8)
    sides = [
        torch.from_numpy(rng.standard_normal(packing.scales_shape(rows, columns)).astype(packing.scale_dtype))
        for _ in range(2)
    ]
    return [torch.from_numpy(packed), sides[0], sides[1] if packing.offsets else None]


def _call(packing: Packing, parts: list[torch.Tensor | None]) -> torch.Tensor:
    packed, scales, offsets = parts
    assert packed is not None and scales is not None
    return dequantize(packed, scales, offsets, packing.bits, packing.group, packing.zero)


class Product(torch.nn.Module):
    """A product with a quantised weight, some rows of which are read too."""

    def __init__(self, packing: Packing) -> None:
        super().__init__()
        self.packing = packing
        for name, part in zip(("packed", "scales", "offsets"), _parts(packing), strict=True):
            self.register_buffer(name, part)

    def forward(self, x: torch.Tensor, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight = _call(self.packing, [self.packed, self.scales, self.offsets])
        return torch.nn.functional.linear(x, weight), torch.nn.functional.embedding(rows, weight)


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_values(packing: Packing) -> None:
    parts = _parts(packing)
    arrays = [None if part is None else part.numpy() for part in parts]
    np.testing.assert_array_equal(_call(packing, parts).numpy(), dequantized(*arrays, packing))  # type: ignore[arg-type]


def test_parts_that_do_not_fit() -> None:
    packed, scales, _ = _parts(PACKINGS[0])
    with pytest.raises(QuantizationError, match="do not fit"):
        _call(PACKINGS[0], [packed, scales[:, :1], None])  # type: ignore[index]
    with pytest.raises(QuantizationError, match="no bits of 3"):
        dequantize(packed, scales, None, 3, 32, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("packing", PACKINGS, ids=str)
def test_imported_as_a_quantised_tensor(packing: Packing) -> None:
    """Its bytes are constants as they are, of which nothing is computed ahead of time."""
    model = Product(packing).eval()
    program = torch.export.export(model, (torch.randn(3, 64), torch.tensor([1, 5])))
    mod = from_torch(program)
    calls = []

    def visit(expr: relax.Expr) -> None:
        if is_dequantize(expr):
            calls.append(expr)

    relax.analysis.post_order_visit(mod["main"], visit)
    assert calls and all(packing_of(call) == packing for call in calls)
    held = calls[0].args[1]
    assert isinstance(held, tvm.ir.GenericConst)
    np.testing.assert_array_equal(held.value.numpy(), model.packed.numpy())
