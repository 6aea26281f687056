# SPDX-License-Identifier: Apache-2.0
"""Rules on positions: whole numbers that arange counts, whose first is known though their count is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import relax

from ...sizes.open_arithmetic import same
from ...sizes.open_size import AnySize, OpenSize, expressions
from ..relax_view import dtype_of, op_name, shape_of, uniform_of
from .linear import Linear, combined, linear, of_call
from .rewriter import Rewriter


def counted(expr: tvm.ir.Expr, rewriter: Rewriter) -> tuple[AnySize, AnySize] | None:
    """Positions, first and one after the last, that a tensor of whole numbers holds in a row; None of others.

    They may be open sizes.
    """
    found, shape = linear(expr, rewriter), shape_of(expr)
    if found is None or shape is None:
        return None
    wide = [axis for axis, size in enumerate(shape) if not same(size, 1)]
    if len(wide) != 1 or not same(found.steps[wide[0]], 1):
        return None
    return found.constant, found.constant + shape[wide[0]]


def least_value(expr: tvm.ir.Expr, rewriter: Rewriter) -> int | None:
    """A number that no element is below; None where none is known."""
    found, shape = linear(expr, rewriter), shape_of(expr)
    if found is not None and shape is not None:
        return found.ends(shape)[0]
    call = rewriter.made_by(expr, "reshape", "permute_dims", "broadcast_to", "add", "concat")
    if call is None or "int" not in dtype_of(expr):
        return None
    name, args = op_name(call), list(call.args)
    if name == "concat":
        args = list(args[0].fields) if isinstance(args[0], tvm.ir.Tuple) else [args[0]]
    parts = [least_value(arg, rewriter) for arg in args[: None if name in ("add", "concat") else 1]]
    known = [part for part in parts if part is not None]
    if len(known) != len(parts):
        return None
    return sum(known) if name == "add" else min(known)


def compared(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """x < c -> false, x >= c -> true, where no element of x is below c."""
    bound, target = uniform_of(call.args[1]), shape_of(call)
    least = None if bound is None else least_value(call.args[0], rewriter)
    if bound is None or least is None or target is None or least < float(bound):
        return None
    return rewriter.broadcast(relax.const(op_name(call) == "greater_equal", "bool"), target)


#: Comparison -> of the least and the greatest difference of its operands: whether it holds; None: it depends.
DECIDED: dict[str, Callable[[int, int], bool | None]] = {
    "equal": lambda low, high: True if low == high == 0 else False if low > 0 or high < 0 else None,
    "not_equal": lambda low, high: False if low == high == 0 else True if low > 0 or high < 0 else None,
    "less": lambda low, high: True if high < 0 else False if low >= 0 else None,
    "less_equal": lambda low, high: True if high <= 0 else False if low > 0 else None,
    "greater": lambda low, high: True if low > 0 else False if high <= 0 else None,
    "greater_equal": lambda low, high: True if low >= 0 else False if high < 0 else None,
}


def compared_positions(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A comparison of positions that comes out the same everywhere -> true or false."""
    target = shape_of(call)
    one, other = (linear(arg, rewriter) for arg in call.args)
    if one is None or other is None or target is None:
        return None
    low, high = combined(one, other, -1, len(target)).ends(target)
    holds = None if low is None or high is None else DECIDED[op_name(call)](low, high)
    return None if holds is None else rewriter.broadcast(relax.const(holds, "bool"), target)


def equal_everywhere(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A sum, difference or product of positions that is one number everywhere -> that number."""
    target = shape_of(call)
    if target is None or dtype_of(call) not in ("int32", "int64"):
        return None
    found = of_call(call, target, rewriter)
    if found is None or not found.is_uniform:
        return None
    return rewriter.broadcast(relax.const(found.constant, dtype_of(call)), target)


def counted_from_size(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """arange(n) + m -> arange(m, m + n), where m is an open size."""
    shape, dtype = shape_of(call), dtype_of(call)
    if shape is None or dtype not in ("int32", "int64"):
        return None
    found = of_call(call, shape, rewriter)
    wide = [] if found is None else [axis for axis, step in enumerate(found.steps) if not same(step, 0)]
    if found is None or len(wide) != 1 or not isinstance(found.constant, OpenSize):
        return None
    step = found.steps[wide[0]]
    if not isinstance(step, int) or step < 1:
        return None
    end = found.constant + step * shape[wide[0]]
    places = rewriter.emit(relax.op.arange(*expressions((found.constant, end)), step, dtype))
    beside = tuple(shape[axis] if axis == wide[0] else 1 for axis in range(len(shape)))
    return rewriter.broadcast(rewriter.reshape(places, beside), shape)


def _number_of(expr: tvm.ir.Expr, rewriter: Rewriter) -> Any:
    """The one value of equal elements, of a constant or of what one is broadcast to."""
    inner = rewriter.made_by(expr, "broadcast_to")
    return uniform_of(expr if inner is None else inner.args[0])


def running_nothing(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """Running sums of zeros -> zeros."""
    value, target = _number_of(call.args[0], rewriter), shape_of(call)
    if value is None or value != 0 or target is None:
        return None
    return rewriter.broadcast(relax.const(0, dtype_of(call)), target)


def indexed(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """x[i, j] by all positions along axes of the result in the same order -> a reshape of x."""
    indices = call.args[1]
    if not isinstance(indices, tvm.ir.Tuple):
        return None
    shapes = [shape_of(index) for index in indices.fields]
    if any(shape is None for shape in shapes):
        return None
    found = [linear(index, rewriter) for index in indices.fields]
    return _reshaped(call, found, [shape for shape in shapes if shape is not None], rewriter)


def indexed_together(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """The same where the indices of all axes lie beside each other (gather_nd)."""
    joined, shape = rewriter.made_by(call.args[1], "concat"), shape_of(call.args[1])
    if joined is None or shape is None or int(call.attrs.batch_dims):
        return None
    columns = list(joined.args[0].fields) if isinstance(joined.args[0], tvm.ir.Tuple) else []
    if int(joined.attrs.axis) % len(shape) != len(shape) - 1 or len(columns) != shape[-1]:
        return None
    found = [linear(column, rewriter) for column in columns]
    rows = [each and Linear(each.constant, each.steps[:-1]) for each in found]
    return _reshaped(call, rows, [shape[:-1]] * len(columns), rewriter)


def _reshaped(
    call: tvm.ir.Call,
    found: Sequence[Linear | None],
    within: Sequence[Sequence[AnySize]],
    rewriter: Rewriter,
) -> tvm.ir.Expr | None:
    """What indices of the first axes take, each with the shape that it is broadcast from."""
    source = call.args[0]
    shape, target = shape_of(source), shape_of(call)
    if shape is None or target is None:
        return None
    rank = len(target) - len(shape) + len(found)
    places = []
    for index, sizes, extent in zip(found, within, shape, strict=False):
        if index is None or not same(index.constant, 0):
            return None
        wide = [axis for axis, size in enumerate(sizes) if not same(index.steps[axis], 0)]
        if not wide and same(extent, 1):
            continue
        if len(wide) != 1 or not same(index.steps[wide[0]], 1) or not same(sizes[wide[0]], extent):
            return None
        places.append(wide[0] + rank - len(sizes))
    alone = all(same(size, 1) for axis, size in enumerate(target[:rank]) if axis not in places)
    return rewriter.reshape(source, target) if alone and places == sorted(set(places)) else None


def of_one_number(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """Elements of equal elements -> that number."""
    value, target = _number_of(call.args[0], rewriter), shape_of(call)
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
