# SPDX-License-Identifier: Apache-2.0
"""Codes of 4 bits as PyTorch's own products with such weights have them (`aten._weight_int4pack_mm`)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..errors import QuantizationError

#: Rows and columns of a tile of the layout for GPUs, and columns of two tiles, which a word has.
TILE_ROWS, TILE_COLUMNS = 8, 16
#: Columns, within two tiles, of the 8 codes of a word of the first lane, the lowest bits first.
PLACES = np.array([0, 8, 16, 24, 1, 9, 17, 25])


def codes_of_tiles(packed: Tensor, rows: int) -> np.ndarray:
    """Codes [rows, columns] of the layout for GPUs: a fragment of m16n8k16 for each lane of a warp.

    Parameters
    ----------
    packed : Tensor of int32, (rows / 8, columns / (16 * inner), 32, inner / 2)
        Source: PyTorch, ``aten/src/ATen/native/cuda/int4mm.cu``, ``_convert_weight_to_int4pack``.
    rows : int
        Of the weight; those that fill the last tile are cut off.

    Raises
    ------
    QuantizationError
        For another shape.
    """
    shape = tuple(packed.shape)
    if len(shape) != 4 or shape[2] != 32 or packed.dtype != torch.int32 or shape[0] != -(-rows // TILE_ROWS):
        raise _unfit(
            f"{packed.dtype}{shape}", rows, "int32 (rows / 8, columns / (16 * inner), 32, inner / 2)"
        )
    row_tiles, outer, _, words = shape
    unsigned = packed.contiguous().numpy().view(np.uint32).reshape(row_tiles, outer, 8, 4, words, 1)
    codes = (unsigned >> (4 * np.arange(8, dtype=np.uint32)) & 15).astype(np.uint8)
    step = words * 2 * TILE_COLUMNS
    columns = (
        np.arange(outer)[:, None, None, None] * step
        + np.arange(words)[None, None, :, None] * 2 * TILE_COLUMNS
        + np.arange(4)[None, :, None, None] * 2
        + PLACES
    )
    made = np.empty((row_tiles * 8, outer * step), np.uint8)
    made[:, columns.reshape(-1)] = codes.transpose(0, 2, 1, 3, 4, 5).reshape(row_tiles * 8, -1)
    return made[:rows]


def codes_for_cpu(packed: Tensor, rows: int) -> np.ndarray:
    """Codes [rows, columns] of the layout for CPUs, which differs from CPU to CPU.

    They are what PyTorch's own product with the rows of an identity gives, with scales of 1.

    Parameters
    ----------
    packed : Tensor of uint8, (rows, columns / 2)

    Raises
    ------
    QuantizationError
        For another shape.
    """
    shape = tuple(packed.shape)
    if len(shape) != 2 or packed.dtype != torch.uint8 or shape[0] != rows or shape[1] * 2 % 32:
        raise _unfit(f"{packed.dtype}{shape}", rows, "uint8 (rows, columns / 2), columns a multiple of 32")
    columns, group = 2 * shape[1], 32
    sides = torch.zeros(columns // group, rows, 2)
    sides[..., 0] = 1
    made = np.empty((rows, columns), np.uint8)
    for begin in range(0, columns, 1024):
        some = torch.eye(columns)[begin : begin + 1024]
        values = torch.ops.aten._weight_int4pack_mm_for_cpu(some, packed, group, sides)
        made[:, begin : begin + 1024] = (values.T + 8).round().to(torch.uint8).numpy()
    return made


def _unfit(found: str, rows: int, need: str) -> QuantizationError:
    return QuantizationError(
        f"A weight of 4 bits with {rows} rows lies as {found}.",
        need=need,
        remedy="pack it with PyTorch's own operator for the product that reads it",
    )
