# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements: whatever has none is a constant, and operators on them do without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan, prod
from typing import Any

import tvm
from tvm import relax

from ...errors import ShapeError
from ...sizes.open_arithmetic import is_open
from ..element_needs import need_as_many, need_elements
from ..relax_view import dtype_of, integers, op_name, shape_of


def empty_value(type_: tvm.ir.Type) -> tvm.ir.Expr | None:
    """What every value of a type without elements is: a constant, or a tuple of such; None for others."""
    if isinstance(type_, relax.TupleType):
        fields = [empty_value(field) for field in type_.fields]
        return relax.Tuple(fields) if fields and None not in fields else None
    if not isinstance(type_, relax.TensorType) or not isinstance(type_.shape, relax.ShapeExpr):
        return None
    shape = integers(type_.shape)
    if shape is None or 0 not in shape or is_open(shape):
        return None
    return constant(shape, str(type_.dtype))


def constant(shape: tuple[int, ...], dtype: str) -> tvm.ir.GenericConst:
    """A constant without elements."""
    assert prod(shape) == 0, shape
    return relax.const(tvm.runtime.empty(shape, dtype), dtype)


def is_empty(expr: tvm.ir.Expr) -> bool:
    """Whether a tensor has no elements."""
    shape = shape_of(expr)
    return shape is not None and 0 in shape


def reshape(expr: tvm.ir.Expr, shape: Sequence[Any]) -> tvm.ir.Expr:
    """A tensor in another shape; Relax's own reshape takes a size of 0 for that of the operand's axis."""
    if any(isinstance(size, int) and size == 0 for size in shape):
        return constant(tuple(shape), dtype_of(expr))
    return relax.op.reshape(expr, tuple(shape))


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


def _zero(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """A sum of no products is zero."""
    return _full(call, 0) if _takes_nothing(call) else None


def _nan(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """Sums over no elements, divided by their number; integers have nothing for it but 0."""
    return _full(call, nan if "float" in dtype_of(call) else 0) if _takes_nothing(call) else None


def _chosen(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """One of the elements along axes, which may be sizes that the model finds.

    Raises
    ------
    SizeError
        There is none.
    """
    shape, axis = shape_of(call.args[0]), call.attrs.axis
    if shape:
        need_elements(op_name(call), shape, range(len(shape)) if axis is None else [int(axis)])
    return None


def _refused(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """An element is asked for, and there is none.

    Raises
    ------
    ShapeError
    """
    if not is_empty(call.args[0]):
        return None
    raise ShapeError(
        f"{op_name(call)} of a tensor without elements has no result.",
        where=f"{list(shape_of(call.args[0]) or ())} -> {list(shape_of(call) or ())}",
        need="at least one element to choose among",
        remedy="pass sizes other than 0, or leave the operator out where there is nothing",
    )


def _largest(call: tvm.ir.Call) -> tvm.ir.Expr | None:
    """As many elements as are asked for: those of an open axis may be fewer."""
    shape = shape_of(call.args[0])
    if shape:
        need_as_many(op_name(call), shape, int(call.attrs.axis), int(call.attrs.k))
    return None


def _takes_nothing(call: tvm.ir.Call) -> bool:
    """Whether an operand, or a member of one that is a tuple, has no elements."""
    return any(
        is_empty(part)
        for arg in call.args
        for part in (arg.fields if isinstance(arg, tvm.ir.Tuple) else [arg])
    )


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


_POOLS = ("max", "avg", "adaptive_avg")
_RULES: dict[str, Callable[[tvm.ir.Call], tvm.ir.Expr | None]] = {
    "concat": _concat,
    "nn.pad": _pad,
    **dict.fromkeys(("matmul", "einsum", "nn.attention", "nn.attention_bias"), _zero),
    **dict.fromkeys((f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")), _zero),
    **dict.fromkeys(("mean", "variance", "std"), _nan),
    **dict.fromkeys(("argmax", "argmin"), _chosen),
    "topk": _largest,
    **dict.fromkeys(("median", "take", "gather_elements", "gather_nd"), _refused),
    **dict.fromkeys((f"nn.{kind}_pool{rank}d" for rank in (1, 2, 3) for kind in _POOLS), _refused),
    **dict.fromkeys(("image.resize2d", "image.resize3d", "image.grid_sample"), _refused),
    **dict.fromkeys(("index_put", "scatter_elements", "scatter_nd", "slice_scatter"), _unchanged),
}
