# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors in Relax.

Such a tensor is a call of `FUNCTION`, which nothing folds; `kernel_graph` makes one operator of it and the
product that reads it, and `expanded` says it in Relax's own operators.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from .errors import QuantizationError
from .quantized import RESULTS, Packing, check

#: The name that a call has in Relax; nothing is registered under it.
FUNCTION = "uir.dequantize"


def dequantize_call(
    builder: relax.BlockBuilder,
    packing: Packing,
    packed: Any,
    scales: Any,
    offsets: Any = None,
    dtype: str = "float32",
) -> Any:
    """A quantised tensor in Relax.

    Parameters
    ----------
    builder : relax.BlockBuilder
        Gives the call its type; the caller emits it.
    packing : Packing
    packed, scales, offsets : Expr
        Tensors as the packing says; constants stay as they are.
    dtype : str
        Of the values, which are rounded to it once: float32, float16 or bfloat16.

    Returns
    -------
    Expr
        A call [rows, columns].

    Raises
    ------
    QuantizationError
        Where the parts do not fit, or the dtype is none of these.
    """
    if dtype not in RESULTS:
        raise QuantizationError(
            f"A quantised tensor has no values of {dtype}.", need=", ".join(RESULTS), remedy="cast them after"
        )
    parts = [packed, scales] if offsets is None else [packed, scales, offsets]
    sides = [tuple(int(size) for size in part.ty.shape.values) for part in parts]
    shape = check(packing, sides[0], sides[1:], [str(part.ty.dtype) for part in parts])
    told = tvm.ir.StringImm(packing.to_json())
    made = relax.TensorType(shape, dtype)
    return builder.normalize(relax.op.call_pure_packed(FUNCTION, *parts, told, ty_args=made))


def is_dequantize(call: Any) -> bool:
    """Whether an expression is the call of a quantised tensor."""
    return (
        isinstance(call, tvm.ir.Call)
        and isinstance(call.op, tvm.ir.Op)
        and call.op.name == "relax.call_pure_packed"
        and str(call.args[0].global_symbol) == FUNCTION
    )


def packing_of(call: Any) -> Packing:
    """The packing of a quantised tensor's call."""
    return Packing.from_json(str(call.args[-1].value))


def expanded(builder: relax.BlockBuilder, call: Any, parts: list[Any] | None = None) -> Any:
    """A quantised tensor in operators of Relax: shifts, a cast, a product and a sum.

    Parameters
    ----------
    builder : relax.BlockBuilder
    call : Expr
        Of `dequantize_call`.
    parts : list of Expr, optional
        What stands for the call's tensors; they may have another number of rows.

    Returns
    -------
    Expr
        An emitted variable, of the call's dtype.
    """
    packing, emit, op = packing_of(call), builder.emit, relax.op
    packed, *others = list(call.args[1:-1]) if parts is None else parts
    rows, size = packed.ty.shape.values
    groups, half = others[0].ty.shape.values[1], packing.group * packing.bits // 8
    codes = emit(op.reshape(packed, (rows, groups, half)))
    wide = [emit(op.reshape(other, (rows, groups, 1))) for other in others]
    if packing.scale_dtype != "float32":
        wide = [emit(op.astype(other, "float32")) for other in wide]
    if packing.bits == 4:
        # halves apart: by one number each they are masked and shifted by vectors of any device
        low = emit(op.bitwise_and(codes, relax.const(15, "uint8")))
        high = emit(op.right_shift(codes, relax.const(4, "uint8")))
        codes = emit(op.concat([low, high], axis=2))
    values = emit(op.astype(codes, "float32"))
    if packing.zero:
        values = emit(op.subtract(values, relax.const(float(packing.zero), "float32")))
    values = emit(op.multiply(values, wide[0]))
    if packing.offsets:
        values = emit(op.add(values, wide[1]))
    values = emit(op.reshape(values, (rows, size * 8 // packing.bits)))
    dtype = str(call.ty.dtype)
    return values if dtype == "float32" else emit(op.astype(values, dtype))
