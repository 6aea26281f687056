# SPDX-License-Identifier: Apache-2.0
"""Rules on elementwise operators and reductions: broadcasts, selects, neutral operands, powers, casts."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax

from ..relax_view import axes_of, dtype_of, op_name, shape_of, uniform_of
from .rewriter import Rewriter, recall

UNARY = frozenset(
    "abs astype ceil cos erf exp floor isfinite isinf isnan log logical_not bitwise_not negative round rsqrt "
    "sigmoid sign sin sqrt square tanh nn.gelu nn.gelu_tanh nn.relu nn.silu".split()
)
BINARY = frozenset(
    "add subtract multiply divide floor_divide floor_mod mod power maximum minimum equal not_equal greater "
    "greater_equal less less_equal logical_and logical_or logical_xor bitwise_and bitwise_or "
    "bitwise_xor".split()
)
ELEMENTWISE = UNARY | BINARY | {"where"}
# Operators that have an operand which leaves the other as it is.
NEUTRAL = frozenset("multiply divide logical_and logical_or bitwise_and bitwise_or".split())
STACKED = {"max": relax.op.maximum, "min": relax.op.minimum, "sum": relax.op.add, "prod": relax.op.multiply}
REDUCTIONS = frozenset({"max", "min", "sum", "mean", "prod"})


def elementwise(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """f(broadcast(x), y) -> f(x, y), and the broadcast after f where y does not restore the shape.

    A constant whose elements are all equal counts as the broadcast of a scalar.
    """
    target = shape_of(call)
    if target is None:
        return None
    args, changed = [], False
    for arg in call.args:
        inner = rewriter.made_by(arg, "broadcast_to")
        value = uniform_of(arg) if shape_of(arg) else None
        if inner is not None:
            arg, changed = inner.args[0], True
        elif value is not None:
            arg, changed = relax.const(value, dtype_of(arg)), True
        args.append(arg)
    shapes = [shape_of(arg) for arg in args]
    if not changed or any(shape is None for shape in shapes):
        return None
    small = rewriter.emit(recall(call, args))
    return rewriter.broadcast(small, target)


def select(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """where(constant condition, a, b) -> a or b."""
    condition, target = uniform_of(call.args[0]), shape_of(call)
    if condition is None or target is None:
        return None
    return rewriter.broadcast(call.args[1] if condition else call.args[2], target)


def neutral(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """x * 1, x / 1, n + 0, mask & true, mask | false -> x; x / 2**k -> x * 2**-k (exact)."""
    name, target = op_name(call), shape_of(call)
    if target is None:
        return None
    for index, constant in enumerate(call.args):
        value = uniform_of(constant)
        if value is None:
            continue
        other = call.args[1 - index]
        boolean = dtype_of(call) == "bool"
        keeps = {
            "add": value == 0 and "int" in dtype_of(call),
            "multiply": value == 1 and not boolean,
            "divide": value == 1 and index == 1,
            "logical_and": boolean and bool(value),
            "bitwise_and": boolean and bool(value),
            "logical_or": boolean and not value,
            "bitwise_or": boolean and not value,
        }
        if keeps.get(name, False) and dtype_of(other) == dtype_of(call):
            return rewriter.broadcast(other, target)
        floating = dtype_of(call).startswith("float")
        if name == "divide" and index == 1 and floating and _exact_inverse(float(value)):
            return rewriter.emit(relax.op.multiply(other, relax.const(1 / float(value), dtype_of(call))))
    return None


def _exact_inverse(value: float) -> bool:
    """Whether 1/value is a number that any binary format of interest holds exactly."""
    return 2**-10 <= abs(value) <= 2**10 and abs(math.frexp(value)[0]) == 0.5


def power(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """x**k for k in 1, 2, 3, -1 -> products and a quotient: cheaper, and the same of NaN, infinity and zero.

    Not roots for 0.5 and -0.5: of -inf they are NaN, of -0 they keep the sign.
    """
    base, exponent = call.args[0], uniform_of(call.args[1])
    if exponent is None or not dtype_of(base).startswith("float") or shape_of(base) != shape_of(call):
        return None
    dtype = dtype_of(base)
    forms: dict[float, Callable[[], tvm.ir.Expr]] = {
        1.0: lambda: base,
        2.0: lambda: rewriter.emit(relax.op.multiply(base, base)),
        3.0: lambda: rewriter.emit(relax.op.multiply(rewriter.emit(relax.op.multiply(base, base)), base)),
        -1.0: lambda: rewriter.emit(relax.op.divide(relax.const(1, dtype), base)),
    }
    form = forms.get(float(exponent))
    return form() if form else None


def cast(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A cast to the dtype that the value has -> the value."""
    return call.args[0] if dtype_of(call) == dtype_of(call.args[0]) else None


def clip(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """clip(x, low, high) -> minimum(maximum(x, low), high), without the bounds that bound nothing."""
    value, (low, high) = call.args[0], (float(bound.value) for bound in call.args[1:])
    dtype = dtype_of(call)
    if not dtype.startswith(("float", "int", "uint")):
        return None
    least, most = (-math.inf, math.inf) if dtype.startswith("float") else _range(dtype)
    if low > most or high < least:
        return None
    if low > least:
        value = rewriter.emit(relax.op.maximum(value, relax.const(low, dtype)))
    if high < most:
        value = rewriter.emit(relax.op.minimum(value, relax.const(high, dtype)))
    return value


def _range(dtype: str) -> tuple[float, float]:
    """The least and the greatest number of an integer dtype."""
    info = np.iinfo(dtype)
    return float(info.min), float(info.max)


def reciprocal_root(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """1 / sqrt(x) -> rsqrt(x)."""
    root = rewriter.made_by(call.args[1], "sqrt")
    if root is None or uniform_of(call.args[0]) != 1 or shape_of(root) != shape_of(call):
        return None
    return rewriter.emit(relax.op.rsqrt(root.args[0]))


def reduce_stack(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A reduction of stacked tensors over the axis that stacks them -> the operator between them."""
    inner, shape = rewriter.made_by(call.args[0], "stack"), shape_of(call.args[0])
    if inner is None or shape is None or axes_of(call.attrs.axis, len(shape)) != (stack_axis(inner, shape),):
        return None
    first, *rest = inner.args[0].fields
    result = first
    for field in rest:
        result = rewriter.emit(STACKED[op_name(call)](result, field))
    target = shape_of(call)
    return None if target is None else rewriter.reshape(result, target)


def stack_axis(stack: tvm.ir.Call, shape: tuple[int, ...]) -> int:
    """Axis of the result along which stack puts its operands."""
    return int(stack.attrs.axis or 0) % len(shape)


def reduce_broadcast(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A reduction over axes that a broadcast did not repeat -> the broadcast of the smaller reduction."""
    inner, target = rewriter.made_by(call.args[0], "broadcast_to"), shape_of(call)
    if inner is None or target is None:
        return None
    shape, small = shape_of(call.args[0]), shape_of(inner.args[0])
    if shape is None or small is None:
        return None
    padded = (1,) * (len(shape) - len(small)) + small
    axes = axes_of(call.attrs.axis, len(shape))
    if any(padded[axis] != shape[axis] for axis in axes):
        return None
    operator = getattr(relax.op, op_name(call))
    reduced = rewriter.emit(operator(rewriter.reshape(inner.args[0], padded), list(axes), keepdims=True))
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return rewriter.reshape(rewriter.broadcast(reduced, kept), target)
