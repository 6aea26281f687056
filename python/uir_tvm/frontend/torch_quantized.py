# SPDX-License-Identifier: Apache-2.0
"""``uir::dequantize``: quantised tensors in programs of PyTorch.

Exported programs call it where a weight is kept as integers of few bits (`uir_tvm.quantized`). The import
makes the quantised tensor of Relax of it, and nothing computes the values ahead of time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx

from ..quantized import Packing, check
from ..quantized_calls import dequantize_call
from .torch_graph import UNFOLDED

#: As the operator is called once `name_operators` has named it.
(NAME,) = UNFOLDED

LIBRARY = torch.library.Library("uir", "FRAGMENT")
LIBRARY.define(
    "dequantize(Tensor packed, Tensor scales, Tensor? offsets, int bits, int group, int zero, "
    "ScalarType? dtype=None) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)
#: The operator in graphs.
OPERATOR = torch.ops.uir.dequantize.default


def packing_of(scales: Tensor, offsets: Tensor | None, bits: int, group: int, zero: int) -> Packing:
    """The packing that a call's arguments say."""
    return Packing(bits, group, zero, str(scales.dtype).removeprefix("torch."), offsets is not None)


def _shape(packed: Tensor, scales: Tensor, offsets: Tensor | None, packing: Packing) -> tuple[int, int]:
    sides = [scales] if offsets is None else [scales, offsets]
    names = [str(part.dtype).removeprefix("torch.") for part in (packed, *sides)]
    return check(packing, tuple(packed.shape), [tuple(side.shape) for side in sides], names)


def dequantize(
    packed: Tensor, scales: Tensor, offsets: Tensor | None, bits: int, group: int, zero: int
) -> Tensor:
    """The values of a quantised tensor, as `uir_tvm.quantized.dequantized` has them.

    Parameters
    ----------
    packed : Tensor of uint8, (rows, columns * bits // 8)
    scales, offsets : Tensor of float16 or float32, (rows, columns // group)
    bits, group, zero : int
        As of `Packing`.

    Returns
    -------
    Tensor of float32, (rows, columns)

    Raises
    ------
    QuantizationError
        For parts that do not fit.
    """
    made: Tensor = torch.ops.uir.dequantize(packed, scales, offsets, bits, group, zero)
    return made


@torch.library.impl(LIBRARY, "dequantize", "CompositeExplicitAutograd")
def _computed(
    packed: Tensor,
    scales: Tensor,
    offsets: Tensor | None,
    bits: int,
    group: int,
    zero: int,
    dtype: torch.dtype | None = None,
) -> Tensor:
    packing = packing_of(scales, offsets, bits, group, zero)
    rows, columns = _shape(packed, scales, offsets, packing)
    codes = packed
    if bits == 4:
        halves = packed.reshape(rows, columns // group, 1, group // 2)
        codes = torch.cat([halves & 15, halves >> 4], dim=2)
    values = codes.reshape(rows, columns // group, group).float()
    if zero:
        values -= zero
    values *= scales.float()[..., None]
    if offsets is not None:
        values += offsets.float()[..., None]
    return values.reshape(rows, columns).to(dtype or torch.float32)


# `register_fake` would look for the file of this line among all modules of the process: a fifth of a second
@torch.library.impl(LIBRARY, "dequantize", "Meta")
def _without_values(
    packed: Tensor,
    scales: Tensor,
    offsets: Tensor | None,
    bits: int,
    group: int,
    zero: int,
    dtype: torch.dtype | None = None,
) -> Tensor:
    packing = packing_of(scales, offsets, bits, group, zero)
    return scales.new_empty(_shape(packed, scales, offsets, packing), dtype=dtype or torch.float32)


def convert_dequantize(node: fx.Node, importer: Any) -> Any:
    """The quantised tensor of Relax that a call means."""
    packed, scales, offsets, *numbers = node.args[:6]
    assert isinstance(packed, fx.Node) and isinstance(scales, fx.Node)
    value = scales.meta["val"]
    packing = packing_of(value, value if isinstance(offsets, fx.Node) else None, *numbers)  # type: ignore[arg-type]
    builder, known = importer.block_builder, importer.env
    last = known[offsets] if isinstance(offsets, fx.Node) else None
    dtype = str(node.meta["val"].dtype).removeprefix("torch.")
    return builder.emit(dequantize_call(builder, packing, known[packed], known[scales], last, dtype))
