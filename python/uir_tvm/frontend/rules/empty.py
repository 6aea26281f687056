# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: whatever has none is a constant, and operators on them do without them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import tvm
from tvm import relax

from ..relax_view import dtype_of, integers, op_name, shape_of


def empty_value(type_: tvm.ir.Type) -> tvm.ir.Expr | None:
    """What every value of a type without elements is: a constant, or a tuple of such; None for others."""
    if isinstance(type_, relax.TupleType):
        fields = [empty_value(field) for field in type_.fields]
        return relax.Tuple(fields) if fields and None not in fields else None
    if not isinstance(type_, relax.TensorType) or not isinstance(type_.shape, relax.ShapeExpr):
        return None
    shape = integers(type_.shape)
    return constant(shape, str(type_.dtype)) if shape is not None and 0 in shape else None


def constant(shape: tuple[int, ...], dtype: str) -> tvm.ir.GenericConst:
    """A constant without elements."""
    assert prod(shape) == 0, shape
    return relax.const(tvm.runtime.empty(shape, dtype), dtype)


def is_empty(expr: tvm.ir.Expr) -> bool:
    """Whether a tensor has no elements."""
    shape = shape_of(expr)
    return shape is not None and 0 in shape


def without_empty(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """A call some of whose operands have no elements, by what remains of it; None where nothing is known.

    Its own result has elements.
    """
    rule = _RULES.get(op_name(call))
    return None if rule is None else rule(call)


def _concat(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """Without the empty parts."""
    (parts,) = call.args
    if not isinstance(parts, tvm.ir.Tuple):
        return None
    kept = [part for part in parts.fields if not is_empty(part)]
    if len(kept) == len(parts.fields):
        return None
    return kept[0] if len(kept) == 1 else relax.op.concat(kept, int(call.attrs.axis or 0))


def _matmul(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """A sum of no products is zero."""
    return _full(call, 0) if is_empty(call.args[0]) else None


def _pad(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """Nothing but the padding."""
    if not is_empty(call.args[0]) or str(call.attrs.pad_mode) != "constant":
        return None
    return _full(call, float(call.attrs.pad_value))


def _unchanged(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """Nothing is written into the data."""
    written = call.args[1] if op_name(call) == "slice_scatter" else call.args[2]
    return call.args[0] if is_empty(written) else None


def _full(call: tvm.ir.Call, value: float) -> tvm.ir.Expr:
    shape, dtype = shape_of(call), dtype_of(call)
    assert shape is not None
    return relax.op.full(shape, relax.const(value, dtype), dtype)


_RULES: dict[str, Callable[[tvm.ir.Call], tvm.ir.Expr | None]] = {
    "concat": _concat,
    "matmul": _matmul,
    "nn.pad": _pad,
    **dict.fromkeys(("index_put", "scatter_elements", "scatter_nd", "slice_scatter"), _unchanged),
}
