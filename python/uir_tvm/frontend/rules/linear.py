# SPDX-License-Identifier: Apache-2.0
"""Whole numbers that are linear in their places, and known though the sizes of their tensor are open.

What ``arange`` counts, a constant that steps evenly, and what views, sums, differences and concatenations
make of them: ``t[i, j] = constant + steps[0] * i + steps[1] * j``.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
import tvm
from tvm import relax

from ...sizes.open_arithmetic import ends_of, same
from ...sizes.open_size import AnySize
from ..relax_view import array_of, dtype_of, integers, is_constant, op_name, permutation_of, shape_of, size_of
from .rewriter import Rewriter

#: Constants of more elements are not looked at.
MOST = 1 << 16
#: Operators from the numbers to where they begin.
MOST_OPERATORS = 48


@attrs.frozen
class Linear:
    """``constant + steps . index``; the step of an axis of one element is 0."""

    constant: AnySize
    steps: tuple[AnySize, ...]

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are one number."""
        return all(_is_zero(step) for step in self.steps) and isinstance(self.constant, int)

    def ends(self, shape: Sequence[AnySize]) -> tuple[int | None, int | None]:
        """A number that no element is below, and one that none exceeds; None where none is known."""
        low = high = self.constant
        for step, size in zip(self.steps, shape, strict=True):
            if not isinstance(step, int):
                return None, None
            low, high = low + min(step, 0) * (size - 1), high + max(step, 0) * (size - 1)
        return ends_of(low)[0], ends_of(high)[1]


def linear(expr: tvm.ir.Expr, rewriter: Rewriter, left: int = MOST_OPERATORS) -> Linear | None:
    """What is known of a tensor of whole numbers; None where it is not linear, or that takes too long."""
    shape = shape_of(expr)
    if shape is None or left <= 0 or dtype_of(expr) not in ("int32", "int64"):
        return None
    if is_constant(expr):
        return _of_constant(array_of(expr)) if size_of(shape) <= MOST else None
    call = rewriter.made_by(expr, *_OPERATORS)
    return None if call is None else of_call(call, shape, rewriter, left - 1)


def of_call(
    call: tvm.ir.Call, shape: Sequence[AnySize], rewriter: Rewriter, left: int = MOST_OPERATORS
) -> Linear | None:
    """The same of what a call computes, in this shape."""
    function = _OPERATORS.get(op_name(call))
    found = None if function is None else function(call, rewriter, left)
    if found is None or len(found.steps) != len(shape):
        return None
    steps = (0 if same(size, 1) else step for step, size in zip(found.steps, shape, strict=True))
    return Linear(found.constant, tuple(steps))


def _of_constant(array: np.ndarray) -> Linear | None:
    if not array.size:
        return None
    first = (0,) * array.ndim
    steps = []
    for axis, extent in enumerate(array.shape):
        second = tuple(int(axis == k) for k in range(array.ndim))
        steps.append(int(array[second]) - int(array[first]) if extent > 1 else 0)
    made = np.full(array.shape, int(array[first]), "int64")
    for axis, step in enumerate(steps):
        made += (step * np.arange(array.shape[axis])).reshape(
            [-1 if axis == k else 1 for k in range(array.ndim)]
        )
    return Linear(int(array[first]), tuple(steps)) if np.array_equal(made, array) else None


def _counted(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    numbers = integers(call.args)
    return None if numbers is None else Linear(numbers[0], (numbers[2],))


def _size(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    numbers = integers(call.args[0]) if isinstance(call.args[0], relax.ShapeExpr) else None
    return Linear(numbers[0], (0,)) if numbers is not None and len(numbers) == 1 else None


def _kept(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    return linear(call.args[0], rewriter, left)


def _reshaped(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    """Axes of one element come and go; others stay."""
    inner, before, after = linear(call.args[0], rewriter, left), shape_of(call.args[0]), shape_of(call)
    if inner is None or before is None or after is None:
        return None
    steps = [step for step, size in zip(inner.steps, before, strict=True) if not same(size, 1)]
    if not same(tuple(s for s in before if not same(s, 1)), tuple(s for s in after if not same(s, 1))):
        return Linear(inner.constant, (0,) * len(after)) if inner.is_uniform else None
    rest = iter(steps)
    return Linear(inner.constant, tuple(0 if same(size, 1) else next(rest) for size in after))


def _broadcast(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    inner, after = linear(call.args[0], rewriter, left), shape_of(call)
    if inner is None or after is None:
        return None
    return Linear(inner.constant, (0,) * (len(after) - len(inner.steps)) + inner.steps)


def _permuted(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    inner = linear(call.args[0], rewriter, left)
    if inner is None:
        return None
    return Linear(inner.constant, tuple(inner.steps[a] for a in permutation_of(call, len(inner.steps))))


def _sliced(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    inner, shape = linear(call.args[0], rewriter, left), shape_of(call.args[0])
    axes, begin = integers(call.args[1]), integers(call.args[2])
    strides = integers(call.args[4]) if len(call.args) > 4 else (1,) * len(axes or ())
    if inner is None or shape is None or axes is None or begin is None or strides is None:
        return None
    constant, steps = inner.constant, list(inner.steps)
    for axis, first, stride in zip(axes, begin, strides, strict=True):
        low, _ = ends_of(first)
        if low is None or low < 0 or not isinstance(stride, int) or stride < 1:
            return None
        constant, steps[axis] = constant + steps[axis] * first, steps[axis] * stride
    return Linear(constant, tuple(steps))


def _sum(sign: int, call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    shape = shape_of(call)
    one, other = (linear(arg, rewriter, left // 2) for arg in call.args)
    if one is None or other is None or shape is None:
        return None
    return combined(one, other, sign, len(shape))


def combined(one: Linear, other: Linear, sign: int, rank: int) -> Linear:
    """One and ``sign`` times the other, broadcast to a rank."""
    a, b = ((0,) * (rank - len(each.steps)) + each.steps for each in (one, other))
    steps = tuple(x + sign * y for x, y in zip(a, b, strict=True))
    return Linear(one.constant + sign * other.constant, steps)


def _product(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    shape = shape_of(call)
    one, other = (linear(arg, rewriter, left // 2) for arg in call.args)
    if one is None or other is None or shape is None:
        return None
    if not one.is_uniform:
        one, other = other, one
    if not one.is_uniform:
        return None
    steps = (0,) * (len(shape) - len(other.steps)) + other.steps
    return Linear(one.constant * other.constant, tuple(one.constant * step for step in steps))


def _joined(call: tvm.ir.Call, rewriter: Rewriter, left: int) -> Linear | None:
    """Pieces of which each goes on where the last one ends."""
    fields = list(call.args[0].fields) if isinstance(call.args[0], tvm.ir.Tuple) else []
    shapes = [shape_of(field) for field in fields]
    parts = [linear(field, rewriter, left // max(len(fields), 1)) for field in fields]
    if not fields or any(part is None or shape is None for part, shape in zip(parts, shapes, strict=True)):
        return None
    pieces = [(part, shape) for part, shape in zip(parts, shapes, strict=True) if part and shape]
    if len(pieces) != len(fields):
        return None
    first, rank = pieces[0][0], len(pieces[0][1])
    axis = int(call.attrs.axis or 0) % rank
    long = [part.steps[axis] for part, shape in pieces if not same(shape[axis], 1)]
    step = long[0] if long else pieces[-1][0].constant - first.constant if len(pieces) == 2 else 0
    steps = (*first.steps[:axis], step, *first.steps[axis + 1 :])
    at: AnySize = first.constant
    for part, shape in pieces:
        own = step if same(shape[axis], 1) else part.steps[axis]
        if not same((*part.steps[:axis], own, *part.steps[axis + 1 :]), steps) or not same(part.constant, at):
            return None
        at = at + step * shape[axis]
    return Linear(first.constant, steps)


_OPERATORS = {
    "add": lambda *given: _sum(1, *given),
    "subtract": lambda *given: _sum(-1, *given),
    "multiply": _product,
    "arange": _counted,
    "astype": _kept,
    "broadcast_to": _broadcast,
    "concat": _joined,
    "expand_dims": _reshaped,
    "permute_dims": _permuted,
    "reshape": _reshaped,
    "shape_to_tensor": _size,
    "squeeze": _reshaped,
    "strided_slice": _sliced,
}


def _is_zero(step: AnySize) -> bool:
    return isinstance(step, int) and step == 0
