# SPDX-License-Identifier: Apache-2.0
"""Operators that TVM has for few dtypes, computed in a wider one that holds all numbers of the narrow one."""

from __future__ import annotations

from collections.abc import Mapping

import tvm
from tvm import relax

from ..relax_view import op_name
from .rewriter import Rewriter, recall

#: TVM has no least and greatest of them, no sign, no remainder and no cast to float16.
EIGHT_BITS: Mapping[str, str] = dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), "float32")
FLOATS: Mapping[str, str] = {**EIGHT_BITS, "bfloat16": "float32"}
#: TVM's run-time sort reads narrow floats as others, beyond their end, and refuses these integers.
SORTED: Mapping[str, str] = {
    **FLOATS,
    **dict.fromkeys(("int8", "int16", "uint8", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
}
#: operator -> the dtypes of its first operand that TVM lacks, and what they are computed in.
WIDENED: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("abs", "argmax", "argmin", "grad.max_pool2d_backward"), EIGHT_BITS),
    **dict.fromkeys(("mod", "vision.roi_align", "vision.roi_pool"), EIGHT_BITS),
    **dict.fromkeys(("isfinite", "isinf", "isnan", "log_add_exp"), FLOATS),
    **dict.fromkeys(("argsort", "median", "sort", "topk"), SORTED),
    **dict.fromkeys(("vision.all_class_non_max_suppression", "vision.non_max_suppression"), SORTED),
}


def widened(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """sort(x) -> astype(sort(astype(x, float32)), its dtype) for an x that TVM does not sort."""
    wider = WIDENED[op_name(call)]
    if _dtype(call.args[0].ty) not in wider:
        return None
    made = rewriter.emit(recall(call, [_wide(arg, wider, rewriter) for arg in call.args]))
    if not isinstance(call.ty, relax.TupleType):
        return _as(made, call.ty, rewriter)
    types = list(call.ty.fields)
    fields = [rewriter.emit(relax.TupleGetItem(made, index)) for index in range(len(types))]
    return relax.Tuple([_as(field, type_, rewriter) for field, type_ in zip(fields, types, strict=True)])


def _dtype(type_: tvm.ir.Type) -> str:
    """The dtype of a tensor; empty for others."""
    return str(type_.dtype) if isinstance(type_, relax.TensorType) else ""


def _wide(arg: tvm.ir.Expr, wider: Mapping[str, str], rewriter: Rewriter) -> tvm.ir.Expr:
    narrow = _dtype(arg.ty)
    if narrow not in wider:
        return arg
    wide = rewriter.emit(relax.op.astype(arg, wider[narrow]))
    return _turned(wide, rewriter) if narrow == "uint64" else wide


def _turned(value: tvm.ir.Expr, rewriter: Rewriter) -> tvm.ir.Expr:
    """The bits of an int64 with the first one turned: the order of the same bits as uint64."""
    return rewriter.emit(relax.op.bitwise_xor(value, relax.const(-(2**63), "int64")))


def _as(value: tvm.ir.Expr, type_: tvm.ir.Type, rewriter: Rewriter) -> tvm.ir.Expr:
    """A value in the dtype that the operator declared."""
    dtype = _dtype(type_)
    if dtype in ("", _dtype(value.ty)):
        return value
    if dtype == "uint64":
        value = _turned(value, rewriter)
    return rewriter.emit(relax.op.astype(value, dtype))
