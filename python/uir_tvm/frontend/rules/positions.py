# SPDX-License-Identifier: Apache-2.0
"""Rules on positions: whole numbers that arange counts, whose first is known though their count is open."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax

from ...open_arithmetic import is_one
from ..relax_view import array_of, dtype_of, integers, is_constant, op_name, shape_of, size_of, uniform_of
from .rewriter import Rewriter

#: Constants of more elements are not looked through for their least one.
MOST = 1 << 16


def counted(expr: tvm.ir.Expr, rewriter: Rewriter) -> tuple[int, int] | None:
    """Positions, first and one after the last, that a tensor of whole numbers holds in a row; None of others.

    They may be open sizes. A slice of a constant that counts is one too.
    """
    call = rewriter.made_by(expr, "arange")
    if call is not None:
        numbers = integers(call.args)
        return None if numbers is None or numbers[2] != 1 else (numbers[0], numbers[1])
    call, shape = rewriter.made_by(expr, "strided_slice"), shape_of(expr)
    if call is None or shape is None or not is_constant(call.args[0]):
        return None
    if sum(map(is_one, shape)) != len(shape) - 1:
        return None
    table, axes, begin = array_of(call.args[0]), integers(call.args[1]), integers(call.args[2])
    strides = integers(call.args[4]) if len(call.args) > 4 else (1,)
    if axes is None or begin is None or len(axes) != 1 or strides != (1,) or table.size > MOST:
        return None
    flat = table.ravel()
    if dtype_of(expr) not in ("int32", "int64") or flat.size != table.shape[axes[0]] or begin[0] != 0:
        return None
    first = int(flat[0])
    return (first, first + size_of(shape)) if (np.diff(flat) == 1).all() else None


def least_value(expr: tvm.ir.Expr, rewriter: Rewriter) -> int | None:
    """A number that no element is below; None where none is known."""
    if is_constant(expr):
        array = array_of(expr) if size_of(shape_of(expr) or ()) <= MOST and "int" in dtype_of(expr) else None
        return int(array.min()) if array is not None and array.size else None
    found = counted(expr, rewriter)
    if found is not None:
        return found[0] if isinstance(found[0], int) else None
    call = rewriter.made_by(expr, "reshape", "permute_dims", "broadcast_to", "add")
    if call is None or "int" not in dtype_of(expr):
        return None
    parts = [least_value(arg, rewriter) for arg in call.args[: 2 if op_name(call) == "add" else 1]]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def compared(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """x < c -> false, x >= c -> true, where no element of x is below c."""
    bound, least, target = uniform_of(call.args[1]), least_value(call.args[0], rewriter), shape_of(call)
    if bound is None or least is None or target is None or least < float(bound):
        return None
    return rewriter.broadcast(relax.const(op_name(call) == "greater_equal", "bool"), target)


def indexed(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """x[i, j] by all positions along axes of the result in the same order -> a reshape of x."""
    source, indices = call.args
    shape, target = shape_of(source), shape_of(call)
    if shape is None or target is None or not isinstance(indices, tvm.ir.Tuple):
        return None
    rank = len(target) - len(shape) + len(indices.fields)
    places = []
    for index, extent in zip(indices.fields, shape, strict=False):
        within, inner = shape_of(index), rewriter.made_by(index, "reshape")
        found = counted(index if inner is None else inner.args[0], rewriter)
        if within is None or found != (0, extent):
            return None
        wide = [axis + rank - len(within) for axis, size in enumerate(within) if not is_one(size)]
        if len(wide) != 1:
            return None
        places += wide
    return rewriter.reshape(source, target) if places == sorted(set(places)) else None


def of_one_number(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """Elements of a constant of equal elements -> that number."""
    value, target = uniform_of(call.args[0]), shape_of(call)
    if value is None or target is None:
        return None
    return rewriter.broadcast(relax.const(value, dtype_of(call)), target)


def repeated_indices(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """take by repeated indices along the first axis -> what the indices take, repeated."""
    inner, target = rewriter.made_by(call.args[1], "broadcast_to"), shape_of(call)
    if inner is None or target is None or call.attrs.axis is None or int(call.attrs.axis) != 0:
        return None
    small, wide = shape_of(inner.args[0]), shape_of(call.args[1])
    if small is None or wide is None:
        return None
    indices = rewriter.reshape(inner.args[0], (1,) * (len(wide) - len(small)) + small)
    taken = rewriter.emit(relax.op.take(call.args[0], indices, axis=0, mode=str(call.attrs.mode)))
    return rewriter.broadcast(taken, target)
