# SPDX-License-Identifier: Apache-2.0
"""Weights of few bits with the codes of one place of all groups side by side, and products with them.

Before: codes[c, g * places + p], place p of group g of column c.  After: codes[p, c, g].  What is computed of
the codes of one place then lies as the scales [c, g] do, so that unpacking them is elementwise, and so are
sums over places.  Vector cores, which take their start for every instruction, have long ones so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx, topi

from ..quantized import BY_PLACE, UNPACKED, Packing


def place_major(codes: np.ndarray, packing: Packing) -> np.ndarray:
    """Bytes [columns, groups * places] of a quantised tensor as [places, columns, groups]."""
    columns, size = codes.shape
    places = packing.group * packing.bits // 8
    return np.ascontiguousarray(codes.reshape(columns, size // places, places).transpose(2, 0, 1))


def place_major_te(x: Any, codes: Any, scales: Any, offsets: Any, packing: Packing, dtype: str) -> Any:
    """x [m, k] by the turned tensor of such codes; values and sums in float32.

    There is a product for each part of a group of which a byte has a code, and they are added up.
    """
    places, columns, groups = codes.shape
    rows = x.shape[0]

    def entry_of_x(k: Any, r: Any, g: Any) -> Any:
        return x[r, g * packing.group + k].astype("float32")

    turned = te.compute((packing.group, rows, groups), entry_of_x, "x_by_place", attrs={BY_PLACE: 0})
    scale, offset = _wide(scales), None if offsets is None else _wide(offsets)

    def product(part: int) -> Any:
        def value(p: Any, c: Any, g: Any) -> Any:
            code = codes[p, c, g]
            if packing.bits == 4:
                code = code >> tirx.const(4, "uint8") if part else code & tirx.const(15, "uint8")
            number = code.astype("float32")
            if packing.zero:
                number = number - tirx.const(float(packing.zero), "float32")
            number = number * scale[c, g]
            return number if offset is None else number + offset[c, g]

        values = te.compute(codes.shape, value, f"values_{part}", attrs={BY_PLACE: 1})
        axes = [te.reduce_axis((0, places), "p"), te.reduce_axis((0, groups), "g")]

        def entry(r: Any, c: Any) -> Any:
            p, g = axes
            return te.sum(turned[part * places + p, r, g] * values[p, c, g], axis=axes)

        return te.compute((rows, columns), entry, f"product_{part}", attrs={UNPACKED: 1})

    made = [product(part) for part in range(8 // packing.bits)]
    sums = made[0]
    if len(made) > 1:
        sums = te.compute((rows, columns), lambda r, c: made[0][r, c] + made[1][r, c], "both_parts")
    return sums if dtype == "float32" else topi.cast(sums, dtype)


def _wide(part: Any) -> Any:
    """Scales or offsets in float32, once for all places."""
    return te.compute(
        part.shape, lambda c, g: part[c, g].astype("float32"), f"{part.op.name}_wide", attrs={BY_PLACE: 0}
    )
