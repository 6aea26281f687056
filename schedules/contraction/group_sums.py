# SPDX-License-Identifier: Apache-2.0
"""Products with codes by place, with what a group has once taken out of the sums over places.

Before, where n_i are the numbers that are made of a byte (`uir_tvm.schedule.by_place`)::

    for i, p, c, g: W_i[p, c, g] = n_i(w[p, c, g]) * s[c, g] + added_i[c, g]
    for i, r, c, p, g: P_i[r, c] += X_i[p, r, g] * W_i[p, c, g]
    for r, c: Y[r, c] = sum_i P_i[r, c]

After::

    for i, p, c, g: N_i[p, c, g] = n_i(w[p, c, g])
    for r, c, g, p: S[r, c, g] += sum_i X_i[p, r, g] * N_i[p, c, g]
    for i, r, g, p: T_i[r, g] += X_i[p, r, g]
    for r, g: A[r, g], B[r, g] = sum_i scales_i * T_i[r, g], sum_i offsets_i * T_i[r, g]
    for r, c, g: Y[r, c] += (S[r, c, g] + A[r, g]) * s[c, g] + B[r, g] * o[c, g]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import te, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import structural_map
from uir_tvm.quantized import ADDED, BY_PLACE, OFFSETS, PACKING, SCALES, SUM, UNPACKED, VALUES, Packing, X
from uir_tvm.schedule.blocks import collect
from uir_tvm.schedule.by_place import number_of, zeros_of
from uir_tvm.schedule.make_tir import changed, sequence


def with_group_sums(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with such sums in the place of its products, whose rows are a number."""
    root = func.body.block
    nests = list(root.body.seq)
    leaves = [collect(nest, SBlock)[-1] for nest in nests]
    roles = [str(dict(leaf.annotations).get(BY_PLACE, "")) for leaf in leaves]
    made = {leaf.writes[0].source: role for leaf, role in zip(leaves, roles, strict=True)}
    products = [leaf for leaf in leaves if PACKING in dict(leaf.annotations)]
    packing = Packing.from_json(str(dict(products[0].annotations)[PACKING]))
    factors = [buffer for leaf in products for buffer in _read(leaf) if made.get(buffer) == X]
    codes = next(
        b
        for leaf, role in zip(leaves, roles, strict=True)
        if role == VALUES
        for b in _read(leaf)
        if b not in made
    )
    sides = [next((b for b, role in made.items() if role == side), None) for side in (SCALES, OFFSETS)]
    replaced = [
        PACKING in dict(leaf.annotations) or role in (VALUES, ADDED, SUM)
        for leaf, role in zip(leaves, roles, strict=True)
    ]
    last = len(nests) - 1 - replaced[::-1].index(True)
    sums = _group_sums([*factors, codes, *sides], leaves[last].writes[0].source, packing)
    body, gone = list[Any](), set[Any]()
    for place, nest in enumerate(nests):
        if not replaced[place]:
            body.append(nest)
        elif place == last:
            body.extend(sums.body.seq)
        else:
            gone.add(leaves[place].writes[0].source)
    held = [buffer for buffer in root.alloc_buffers if buffer not in gone]
    whole = changed(root, body=sequence(body), alloc_buffers=[*held, *sums.alloc_buffers])
    return tirx.PrimFunc(func.params, SBlockRealize([], True, whole), func.ret_type, func.attrs)


def _read(leaf: SBlock) -> list[Any]:
    return [region.source for region in leaf.reads]


def _group_sums(given: Sequence[Any | None], target: Any, packing: Packing) -> SBlock:
    """The sums as a block of factors, codes, scales and perhaps offsets, written to a buffer."""
    buffers = [buffer for buffer in given if buffer is not None]
    inputs = [te.placeholder(list(buffer.shape), str(buffer.dtype), buffer.name) for buffer in buffers]
    zeros = zeros_of(packing)
    factors, (codes, scales, *more) = inputs[: len(zeros)], inputs[len(zeros) :]
    places, columns, groups = codes.shape
    rows = factors[0].shape[1]
    numbers = [_numbers(codes, packing, part) for part in range(len(zeros))]
    place = te.reduce_axis((0, places), "p")

    def sum_of_group(r: Any, c: Any, g: Any) -> Any:
        terms = [x[place, r, g] * n[place, c, g] for x, n in zip(factors, numbers, strict=True)]
        return te.sum(sum(terms[1:], terms[0]), axis=place)

    sums = te.compute((rows, columns, groups), sum_of_group, "group_sums", attrs={UNPACKED: 1})
    totals = [_total(x, part) for part, x in enumerate(factors)]
    of_scale = _weighted(totals, [zero.scales for zero in zeros], "x_of_scales")
    of_offset = _weighted(totals, [zero.offsets for zero in zeros], "x_of_offsets") if more else None
    group = te.reduce_axis((0, groups), "g")

    def entry(r: Any, c: Any) -> Any:
        value = sums[r, c, group]
        if of_scale is not None:
            value = value + of_scale[r, group]
        value = value * scales[c, group]
        if of_offset is not None:
            value = value + of_offset[r, group] * more[0][c, group]
        return te.sum(value, axis=group)

    result = te.compute((rows, columns), entry, "sum_of_groups")
    func = te.create_prim_func([*inputs, result], "int64")
    names = dict(zip(func.params, [*buffers, target], strict=True))
    return structural_map(func.body.block, (tvm.ir.Var, lambda var: names.get(var, var)))


def _numbers(codes: Any, packing: Packing, part: int) -> Any:
    return te.compute(
        codes.shape,
        lambda *at: number_of(codes[at], packing, part),
        f"numbers_{part}",
        attrs={BY_PLACE: VALUES},
    )


def _total(x: Any, part: int) -> Any:
    """The sum of a group's factors."""
    place = te.reduce_axis((0, x.shape[0]), "p")
    return te.compute(
        x.shape[1:], lambda r, g: te.sum(x[place, r, g], axis=place), f"x_total_{part}", attrs={BY_PLACE: X}
    )


def _weighted(totals: Sequence[Any], weights: Sequence[int], name: str) -> Any | None:
    """The sum of totals that have a weight, times it; None where none has."""
    terms = [
        (total, tirx.const(weight, "float32"))
        for total, weight in zip(totals, weights, strict=True)
        if weight
    ]
    if not terms:
        return None

    def entry(r: Any, g: Any) -> Any:
        products = [total[r, g] * weight for total, weight in terms]
        return sum(products[1:], products[0])

    return te.compute(totals[0].shape, entry, name, attrs={BY_PLACE: X})
