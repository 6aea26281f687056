# SPDX-License-Identifier: Apache-2.0
"""Weights of few bits with the codes of one place of all groups side by side, and products with them.

Before: codes[c, g * places + p], place p of group g of column c.  After: codes[p, c, g].  What is computed of
the codes of one place then lies as the scales [c, g] do, so that unpacking them is elementwise, and so are
sums over places.  Vector cores, which take their start for every instruction, have long ones so.

The highest bit of every byte is turned, so that it is a number with a sign (`uir_tvm.schedule.by_place`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import te, tirx, topi

from ..quantized import ADDED, BY_PLACE, OFFSETS, PACKING, SCALES, SUM, UNPACKED, VALUES, Packing, X
from ..schedule.by_place import HIGH, Zero, number_of, zeros_of


def place_major(codes: np.ndarray, packing: Packing) -> np.ndarray:
    """Bytes [columns, groups * places] of a quantised tensor as int8 [places, columns, groups]."""
    columns, size = codes.shape
    places = packing.group * packing.bits // 8
    turned = codes.reshape(columns, size // places, places).transpose(2, 0, 1)
    return np.ascontiguousarray(turned ^ np.uint8(128)).view(np.int8)


def place_major_te(x: Any, codes: Any, scales: Any, offsets: Any, packing: Packing, dtype: str) -> Any:
    """x [m, k] by the turned tensor of such codes; values and sums in float32.

    There is a product for each number that is made of a byte (`uir_tvm.schedule.by_place`), with factors of
    its own, and they are added up.
    """
    places, columns, groups = codes.shape
    rows = x.shape[0]
    note = {BY_PLACE: X}

    def entry_of_x(k: Any, r: Any, g: Any) -> Any:
        return x[r, g * packing.group + k].astype("float32")

    factors = [te.compute((packing.group, rows, groups), entry_of_x, "x_by_place", attrs=note)]
    if packing.bits == 4:
        (turned,), shape = factors, (places, rows, groups)
        part = tirx.const(1 / HIGH, "float32")
        high = te.compute(shape, lambda p, r, g: turned[places + p, r, g] * part, "x_of_bytes", attrs=note)
        low = te.compute(
            shape, lambda p, r, g: turned[p, r, g] - turned[places + p, r, g] * part, "x_of_low", attrs=note
        )
        factors = [low, high]
    scale, offset = _wide(scales, SCALES), None if offsets is None else _wide(offsets, OFFSETS)

    def product(part: int, zero: Zero) -> Any:
        more = _added(scale, offset, zero, f"added_{part}")

        def value(p: Any, c: Any, g: Any) -> Any:
            number = number_of(codes[p, c, g], packing, part) * scale[c, g]
            return number if more is None else number + more[c, g]

        values = te.compute(codes.shape, value, f"values_{part}", attrs={BY_PLACE: VALUES})
        axes = [te.reduce_axis((0, places), "p"), te.reduce_axis((0, groups), "g")]

        def entry(r: Any, c: Any) -> Any:
            p, g = axes
            return te.sum(factors[part][p, r, g] * values[p, c, g], axis=axes)

        told = {UNPACKED: 1, PACKING: packing.to_json()}
        return te.compute((rows, columns), entry, f"product_{part}", attrs=told)

    made = [product(part, zero) for part, zero in enumerate(zeros_of(packing))]
    sums = made[0]
    if len(made) > 1:
        sums = te.compute(
            (rows, columns), lambda r, c: made[0][r, c] + made[1][r, c], "both_parts", attrs={BY_PLACE: SUM}
        )
    return sums if dtype == "float32" else topi.cast(sums, dtype)


def _added(scale: Any, offset: Any | None, zero: Zero, name: str) -> Any | None:
    """What values of a group have in common: an offset, and the scale of what a number has too much."""
    terms = [
        (part, factor) for part, factor in ((scale, zero.scales), (offset, zero.offsets)) if part is not None
    ]
    terms = [(part, tirx.const(factor, "float32")) for part, factor in terms if factor]
    if not terms:
        return None

    def added(c: Any, g: Any) -> Any:
        products = [part[c, g] * factor for part, factor in terms]
        return sum(products[1:], products[0])

    return te.compute(scale.shape, added, name, attrs={BY_PLACE: ADDED})


def _wide(part: Any, role: str) -> Any:
    """Scales or offsets in float32, once for all places."""
    return te.compute(
        part.shape, lambda c, g: part[c, g].astype("float32"), f"{part.op.name}_wide", attrs={BY_PLACE: role}
    )
