# SPDX-License-Identifier: Apache-2.0
"""Products of bytes for libraries that multiply int8 into int32 or float32; the rest are plain operators."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..frontend.relax_view import dtype_of, integers, op_name, shape_of
from ..library import integer_matmul_attrs
from ..library.integer_matmul_attrs import LONGEST, IntegerMatmulAttrs, IntegerMatmulLimits
from ..library.library_tables import LibraryTable
from . import float_sums
from .byte_tensors import Bytes, Weight, packs_narrow
from .integer_endings import DONE, SUMS, EndedProduct
from .op_kinds import INTEGER_MATMUL
from .program import Op, Program, Value

#: The name that a product has in Relax; nothing is registered under it.
MATMUL = "uir.integer_matmul"
#: What is subtracted from bytes without a sign to give them one.
SIGN = 128

#: Adds a binding to the function that is built.
Emit = Callable[[Any], Any]


def is_integer_matmul(call: Any) -> bool:
    """Whether an expression is such a product."""
    return op_name(call) == "call_pure_packed" and str(call.args[0].global_symbol) == MATMUL


def unfit(call: Any, x: Bytes, weight: Weight, image: bool) -> str:
    """Why a product of bytes is none of int8 into int32; empty where it is."""
    shape = weight.numbers.shape
    if not packs_narrow(weight.numbers):
        return "its weight has numbers of more than 8 bits"
    limits = np.iinfo(dtype_of(x.base))
    if not limits.min <= x.zero <= limits.max:
        return f"the zero point {x.zero} is none of {limits.dtype}"
    length = prod(shape[1:]) if image else shape[0]
    if length > LONGEST:
        return f"its sums are of {length} products, which 32 bits do not hold"
    if not image:
        return ""
    if x.point is not None and any(integers(call.attrs.padding) or ()):
        return "its images are padded with a zero point that is computed"
    sizes = (shape_of(call.args[0]) or ())[2:] + (shape_of(call) or ())[2:]
    if _whole_pixels(call, shape):
        return ""
    if not all(isinstance(size, int) for size in sizes):
        return "its windows are of images of open height or width"
    least, pixels = integer_matmul_attrs.WINDOWS, prod((shape_of(call) or ())[2:])
    small = shape[1] < least.inputs or shape[0] < least.outputs or pixels * prod(shape) < least.products
    return "writing its windows takes longer than bytes save" if prod(shape[2:]) > 1 and small else ""


def emit_product(emit: Emit, limits: IntegerMatmulLimits, product: EndedProduct, x: Any, point: Any) -> Any:
    """A product in Relax.

    Before: q = astype(round(matmul(scale * (x - zero), w * s) / r) + z, uint8), as `EndedProduct` says it.
    After: s = call_pure_packed("uir.integer_matmul", astype(astype(x, int32) - 128, int8), w) of int32;
    q = astype(round(astype(s + start, float32) * factor + term) + z, uint8).

    Parameters
    ----------
    emit : callable
    limits : IntegerMatmulLimits
    product : EndedProduct
    x : Expr
        Its bytes; images with the channels last.
    point : Expr, optional
        Their zero point where it is computed, of one element.
    """
    op, numbers = relax.op, product.numbers
    shift = SIGN if dtype_of(x) == "uint8" else 0
    if shift:
        moved = emit(op.subtract(emit(op.astype(x, limits.sums)), relax.const(shift, limits.sums)))
        x = emit(op.astype(moved, "int8"))
    matrix = numbers.transpose(0, 2, 3, 1) if product.image else numbers
    matrix = matrix.reshape(len(numbers), -1).astype(np.int8)
    outputs, inputs = matrix.shape
    count = 1 if limits.sums == "int32" else float_sums.parts_of(matrix, float_sums.farthest(product))
    more = [-outputs % limits.multiple, -inputs % (limits.multiple * count)]
    parts = [x]
    if product.image and not _whole_pixels(product.call, numbers.shape):
        parts = _windows(emit, product.call, numbers.shape, x, product.x.zero - shift)
    x = _side_by_side(emit, parts, more[1])
    told = json.dumps({"n": outputs + more[0], "k": (inputs + more[1]) // count, "parts": count})
    scale = [relax.const(np.ones(1, np.float32))] if limits.scaled else []
    lead = list(x.ty.shape.values)[:-1]
    shape = [*lead, outputs + more[0]]
    numbers = np.pad(matrix, ((0, more[0]), (0, more[1])))
    if count > 1:
        x = float_sums.side_by_side(emit, x, count)
        shape = [count, prod(lead), outputs + more[0]]
        numbers = numbers.reshape(len(numbers), count, -1).transpose(1, 0, 2).copy()
    weight = relax.const(numbers)
    sums = emit(
        op.call_pure_packed(
            MATMUL, x, weight, *scale, tvm.ir.StringImm(told), ty_args=relax.TensorType(shape, limits.sums)
        )
    )
    if more[0]:
        sums = emit(op.strided_slice(sums, [len(shape) - 1], [0], [outputs]))
    if limits.sums != "int32":
        each = [sums]
        if count > 1:
            rows = [emit(op.strided_slice(sums, [0], [at], [at + 1])) for at in range(count)]
            each = [emit(op.reshape(row, (*lead, outputs))) for row in rows]
        return _finished(emit, product, float_sums.added(emit, product, each, shift, count, point))
    totals = matrix.sum(1, dtype=np.int64)
    start = product.ending.start + (shift - product.x.zero) * totals
    if start.any():
        sums = emit(op.add(sums, relax.const(start.astype(np.int32))))
    if point is not None:
        zero = emit(op.astype(point, "int32"))
        sums = emit(op.subtract(sums, emit(op.multiply(relax.const(totals.astype(np.int32)), zero))))
    return _finished(emit, product, sums)


def _finished(emit: Emit, product: EndedProduct, sums: Any) -> Any:
    """What becomes of the sums, as `library.integer_attrs.IntegerEnding` says it."""
    op, ending, packed = relax.op, product.ending, product.ending.packed()
    if ending.stage == SUMS:
        return sums
    real = sums if dtype_of(sums) == "float32" else emit(op.astype(sums, "float32"))
    real = emit(op.multiply(real, relax.const(packed.factor)))
    if packed.term.any():
        real = emit(op.add(real, relax.const(packed.term)))
    if np.isfinite(packed.low):
        real = emit(op.maximum(real, relax.const(np.float32(packed.low))))
    if np.isfinite(packed.high):
        real = emit(op.minimum(real, relax.const(np.float32(packed.high))))
    if ending.stage != DONE:
        return real
    whole = emit(op.round(real))
    if ending.zero:
        whole = emit(op.add(whole, relax.const(np.float32(ending.zero))))
    return emit(op.astype(whole, ending.dtype))


def _whole_pixels(call: Any, shape: tuple[int, ...]) -> bool:
    """Whether windows are the pixels of the image, each once."""
    padding, strides = (integers(given) or () for given in (call.attrs.padding, call.attrs.strides))
    return shape[2:] == (1, 1) and not any(padding) and strides == (1, 1)


def _side_by_side(emit: Emit, parts: list[Any], more: int) -> Any:
    """Tensors side by side, and as many numbers more: any, because the weight has zeros there."""
    axis, length = len(parts[0].ty.shape.values) - 1, int(parts[0].ty.shape.values[-1])
    parts = [*parts, *parts[:1] * (more // length)]
    if more % length:
        parts.append(emit(relax.op.strided_slice(parts[0], [axis], [0], [more % length])))
    return emit(relax.op.concat(parts, axis=axis)) if len(parts) > 1 else parts[0]


def _windows(emit: Emit, call: Any, shape: tuple[int, ...], x: Any, zero: int) -> list[Any]:
    """Every pixel of the windows of images with the channels last.

    Before: x [n, h, w, c].  After: [n, rows, columns, c] for each pixel of the window, row by row.
    """
    given, rows_and_columns = call.attrs, (shape_of(call) or ())[2:]
    above, left, below, right = integers(given.padding) or (0, 0, 0, 0)
    if any((above, left, below, right)):
        widths = [0, 0, above, below, left, right, 0, 0]
        x = emit(relax.op.nn.pad(x, widths, "constant", zero))
    strides, dilation = integers(given.strides) or (1, 1), integers(given.dilation) or (1, 1)
    parts = []
    for at in np.ndindex(*shape[2:]):
        begin = [step * place for step, place in zip(dilation, at, strict=True)]
        last = [(count - 1) * step for count, step in zip(rows_and_columns, strides, strict=True)]
        end = [first + more + 1 for first, more in zip(begin, last, strict=True)]
        parts.append(emit(relax.op.strided_slice(x, [1, 2], begin, end, list(strides))))
    return parts


def integer_matmul_call(
    program: Program, op: Op, table: LibraryTable
) -> tuple[str, IntegerMatmulAttrs, list[Value]]:
    """What the library is called with, as `library_call.library_call` says it."""
    assert op.call is not None
    told, shape = json.loads(str(op.call.args[-1].value)), op.operands[0].shape
    rows = shape[1] if told["parts"] > 1 else prod(shape[:-1])
    attributes = IntegerMatmulAttrs(m=rows, **told)
    return table.functions[INTEGER_MATMUL], attributes, [view.base for view in op.operands]
