# SPDX-License-Identifier: Apache-2.0
"""Products with quantised tensors as library operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax, te, tirx, topi

from ..library.attrs import MatmulAttrs
from ..library.library_tables import LibraryTable
from ..library.quantized_attrs import QuantizedMatmulAttrs, pack_quantized
from ..quantized import UNPACKED, Packing
from .op_kinds import PACKED_PRODUCT, QUANTIZED_PRODUCT
from .place_major import place_major, place_major_te
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


def unpack_products(program: Program, table: LibraryTable) -> None:
    """Products with quantised tensors as kernels of ours, where the library has none.

    Before: quantized_matmul(x[b, m, k], codes, ...).  After: packed_product(x[b * m, k], codes, ...), where
    that is a view of x; else its matrices stay apart.  Constant codes are stored by place where the target
    wants that.
    """
    if QUANTIZED_PRODUCT not in table.functions:
        _unpack_products(program, table, {})


def _unpack_products(program: Program, table: LibraryTable, stored: dict[Value, Value]) -> None:
    for index, op in enumerate(program.ops):
        if op.name != QUANTIZED_PRODUCT:
            continue
        x, *parts = op.operands
        rows = prod(op.shape[:-1])
        flat = x.reshape((rows, x.shape[-1]))
        if flat is None:
            copy = program.add_op("copy", [x], x.shape, x.base.dtype)
            program.ops[index : index + 1] = [copy, op]
            op.operands[0] = copy.result.view()
            return _unpack_products(program, table, stored)
        packing, codes = product_packing(op.call), parts[0].base
        by_place = table.place_major and codes.constant is not None and parts[0].layout == codes.view().layout
        if by_place:
            if codes not in stored:
                array = place_major(codes.array, packing)
                stored[codes] = program.constant(array, f"{codes.name}_by_place")
            parts[0] = stored[codes].view()
        attributes = {"packing": packing, "dtype": op.result.dtype, "by_place": by_place}
        shape = (rows, op.shape[-1])
        made = program.add_op(
            PACKED_PRODUCT, [flat, *parts], shape, op.result.dtype, attributes=attributes, hint=op.result.name
        )
        program.ops[index] = made
        program.replace_value(op.result, made.result.view())
    return None


def legalize_packed(builder: relax.BlockBuilder, op: Op, operands: Sequence[tvm.ir.Expr]) -> tvm.ir.Expr:
    """The product's function: groups are axes of their own, so that every index is affine."""
    packing: Packing = op.attrs["packing"]
    dtype = op.attrs["dtype"]
    definition = place_major_te if op.attrs["by_place"] else packed_product_te

    def product(x: Any, codes: Any, scales: Any, offsets: Any = None) -> Any:
        return definition(x, codes, scales, offsets, packing, dtype)

    return builder.emit_te(product, *operands, primfunc_name_hint="packed_product")


def packed_product_te(x: Any, codes: Any, scales: Any, offsets: Any, packing: Packing, dtype: str) -> Any:
    """x [m, k] by the turned tensor that is unpacked of the parts; values and sums in float32."""
    columns, groups = scales.shape
    halves = 8 // packing.bits
    half = packing.group // halves

    def value(c: Any, g: Any, h: Any, j: Any) -> Any:
        code = codes[c, g * half + j]
        if halves > 1:
            code = (code >> (h * 4).astype("uint8")) & tirx.const(15, "uint8")
        number = code.astype("float32")
        if packing.zero:
            number = number - tirx.const(float(packing.zero), "float32")
        number = number * scales[c, g].astype("float32")
        if offsets is not None:
            number = number + offsets[c, g].astype("float32")
        return number

    note = {UNPACKED: 1}
    weight = te.compute((columns, groups, halves, half), value, "weight", attrs=note)
    axes = [te.reduce_axis((0, size), name) for size, name in ((groups, "g"), (halves, "h"), (half, "j"))]

    def entry(r: Any, c: Any) -> Any:
        g, h, j = axes
        factor = x[r, g * packing.group + h * half + j].astype("float32")
        return te.sum(factor * weight[c, g, h, j], axis=axes)

    sums = te.compute((x.shape[0], columns), entry, "product", attrs=note)
    return sums if dtype == "float32" else topi.cast(sums, dtype)


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
    program: Program, quantized: Quantized, product: MatmulAttrs, digits: int
) -> tuple[QuantizedMatmulAttrs, Value]:
    """The attributes of a product with such a weight, and the constant that the library reads."""
    attributes = QuantizedMatmulAttrs.of(product, quantized.packing, digits)
    arrays: list[Any] = [part.array for part in quantized.parts]
    blob = pack_quantized(arrays[0], arrays[1], arrays[2] if len(arrays) > 2 else None, attributes)
    return attributes, program.constant(blob, "packed")
