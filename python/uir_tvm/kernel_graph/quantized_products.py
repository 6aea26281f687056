# SPDX-License-Identifier: Apache-2.0
"""Products with quantised tensors as library operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..library.attrs import MatmulAttrs
from ..library.library_tables import LibraryTable
from ..library.quantized_attrs import QuantizedMatmulAttrs, pack_quantized
from .program import Op, Program, Quantized, Value, View
from .quantized_weights import product_packing


def quantized_product(program: Program, op: Op, table: LibraryTable) -> Op:
    """A product as ``library.matmul``, whose weight is a value that is never in memory as it is.

    Parameters
    ----------
    program : Program
        Gets the weight.
    op : Op
        Operands x, codes, scales and perhaps offsets.
    table : LibraryTable
    """
    x, *parts = op.operands
    packing = product_packing(op.call)
    held = tuple(part.base for part in parts)
    weight = _weight(program, Quantized(packing, held)).broadcast((*op.shape[:-2], x.shape[-1], op.shape[-1]))
    attributes = {"shape": op.shape, "alpha": 1.0, "epilogue": (), "unit_stride": table.unit_stride}
    return Op("library.matmul", None, [x, weight], op.results, attributes)


def _weight(program: Program, quantized: Quantized) -> View:
    """The turned matrix of a quantised tensor."""
    shape = quantized.packing.shape_of(quantized.parts[0].shape)
    value = program.fresh("quantized", shape, "float32")
    value.quantized = quantized
    whole = value.view()
    return View(value, whole.layout.permute([1, 0]))


def joined_weights(program: Program, weights: list[Value]) -> View:
    """The columns of turned matrices of one packing side by side, as one weight."""
    tensors = [value.quantized for value in weights]
    parts = []
    for at, name in enumerate(("codes", "scales", "offsets")[: len(_of(tensors[0]).parts)]):
        parts.append(program.constant(np.concatenate([_of(t).parts[at].array for t in tensors]), name))
    return _weight(program, Quantized(_of(tensors[0]).packing, tuple(parts)))


def _of(quantized: Quantized | None) -> Quantized:
    assert quantized is not None
    return quantized


def packed_product(
    program: Program, quantized: Quantized, product: MatmulAttrs
) -> tuple[QuantizedMatmulAttrs, Value]:
    """The attributes of a product with such a weight, and the constant that the library reads."""
    attributes = QuantizedMatmulAttrs.of(product, quantized.packing)
    arrays: list[Any] = [part.array for part in quantized.parts]
    blob = pack_quantized(arrays[0], arrays[1], arrays[2] if len(arrays) > 2 else None, attributes)
    return attributes, program.constant(blob, "packed")
