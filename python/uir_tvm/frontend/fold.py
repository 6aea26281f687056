# SPDX-License-Identifier: Apache-2.0
"""NumPy meaning of the Relax operators that appear on constants, and the folding of a call by it."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import relax

from ..sizes.open_arithmetic import is_open
from ..tensor_view import tensor_of
from .relax_view import (
    NUMPY_DTYPES,
    Shape,
    array_of,
    axes_of,
    dtype_of,
    integers,
    is_constant,
    op_name,
    shape_of,
    size_of,
)

# A fold may grow the module's constants; past this many bytes it must not exceed what it replaces.
GROWTH_LIMIT = 1 << 20

#: What `fold` made inside of `noting`.
_made: contextvars.ContextVar[list[tvm.ir.GenericConst] | None] = contextvars.ContextVar(
    "uir_folded", default=None
)

Meaning = Callable[[list[Any], Any, Shape], np.ndarray]


def _elementwise(functions: dict[str, Callable[..., Any]]) -> dict[str, Meaning]:
    def meaning(function: Callable[..., Any]) -> Meaning:
        return lambda args, attrs, shape: function(*args)

    return {name: meaning(function) for name, function in functions.items()}


def _reduction(function: Callable[..., np.ndarray], sign: int = 0) -> Meaning:
    """A reduction; ``sign`` of the infinity that one of no elements gives where NumPy has no answer."""

    def meaning(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
        axes = axes_of(attrs.axis, args[0].ndim)
        if sign and not args[0].size:
            return np.full(shape, _extreme(args[0].dtype, sign))
        return function(args[0], axis=axes, keepdims=bool(attrs.keepdims))

    return meaning


def _extreme(dtype: np.dtype, sign: int) -> Any:
    """The lowest (-1) or highest (1) value of a dtype."""
    if dtype.kind == "f":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _reshape(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    return args[0].reshape(shape)


def _broadcast(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    return np.broadcast_to(args[0], shape)


def _creation(value: float) -> Meaning:
    return lambda args, attrs, shape: np.full(shape, value)


def _arange(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    start, _, step = args
    return start + step * np.arange(shape[0])


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if np.issubdtype(np.result_type(x, y), np.integer):
        quotient = np.floor_divide(np.abs(x), np.abs(y))  # Relax divides integers towards zero
        return quotient * np.sign(x) * np.sign(y)
    return np.divide(x, y)


def _strided_slice(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    data, axes, begin, end = args[:4]
    strides = args[4] if len(args) > 4 else (1,) * len(axes)
    index: list[slice] = [slice(None)] * data.ndim
    for axis, first, last, stride in zip(axes, begin, end, strides, strict=True):
        index[axis] = slice(first, last, stride)
    return data[tuple(index)]


def _cumsum(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    data, axis = args[0], attrs.axis
    total = np.cumsum(data, axis=None if axis is None else int(axis))
    if not bool(getattr(attrs, "exclusive", False)):
        return total
    return total - data.reshape(total.shape)


def _take(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    axis = None if attrs.axis is None else int(attrs.axis)
    modes: dict[str, Any] = {
        "wrap": "wrap",
        "clip": "clip",
    }  # others are undefined outside, and refused there
    return np.take(args[0], args[1], axis=axis, mode=modes.get(str(attrs.mode), "raise"))


def _gather_nd(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    assert not int(attrs.batch_dims)
    return args[0][tuple(np.moveaxis(args[1], -1, 0))]


def _pad(args: list[Any], attrs: Any, shape: Shape) -> np.ndarray:
    widths = [int(width) for width in attrs.pad_width]
    return np.pad(args[0], list(zip(widths[::2], widths[1::2], strict=True)), constant_values=attrs.pad_value)


def _triangle(function: Callable[..., np.ndarray]) -> Meaning:
    return lambda args, attrs, shape: function(args[0], args[1])


MEANINGS: dict[str, Meaning] = {
    **_elementwise(
        {
            "abs": np.abs,
            "ceil": np.ceil,
            "cos": np.cos,
            "exp": np.exp,
            "floor": np.floor,
            "isinf": np.isinf,
            "isnan": np.isnan,
            "log": np.log,
            "logical_not": np.logical_not,
            "bitwise_not": np.bitwise_not,
            "negative": np.negative,
            "rsqrt": lambda x: 1 / np.sqrt(x),
            "sign": np.sign,
            "sin": np.sin,
            "sqrt": np.sqrt,
            "square": np.square,
            "tanh": np.tanh,
            "add": np.add,
            "subtract": np.subtract,
            "multiply": np.multiply,
            "divide": _divide,
            "floor_divide": np.floor_divide,
            "floor_mod": np.mod,
            "power": np.power,
            "maximum": np.maximum,
            "minimum": np.minimum,
            "equal": np.equal,
            "not_equal": np.not_equal,
            "greater": np.greater,
            "greater_equal": np.greater_equal,
            "less": np.less,
            "less_equal": np.less_equal,
            "logical_and": np.logical_and,
            "logical_or": np.logical_or,
            "logical_xor": np.logical_xor,
            "bitwise_and": np.bitwise_and,
            "bitwise_or": np.bitwise_or,
            "bitwise_xor": np.bitwise_xor,
            "where": np.where,
        }
    ),
    "max": _reduction(np.max, -1),
    "min": _reduction(np.min, 1),
    "prod": _reduction(np.prod),
    "sum": _reduction(np.sum),
    "astype": lambda args, attrs, shape: args[0],
    "arange": _arange,
    "broadcast_to": _broadcast,
    "concat": lambda args, attrs, shape: np.concatenate(args[0], axis=int(attrs.axis or 0)),
    "cumsum": _cumsum,
    "expand_dims": _reshape,
    "flip": lambda args, attrs, shape: np.flip(args[0], int(attrs.axis)),
    "full": lambda args, attrs, shape: np.broadcast_to(args[1], shape),
    "full_like": lambda args, attrs, shape: np.broadcast_to(args[1], shape),
    "gather_elements": lambda args, attrs, shape: np.take_along_axis(args[0], args[1], axis=int(attrs.axis)),
    "gather_nd": _gather_nd,
    "index_tensor": lambda args, attrs, shape: args[0][tuple(args[1])],
    "nn.pad": _pad,
    "ones": _creation(1),
    "ones_like": _creation(1),
    "permute_dims": lambda args, attrs, shape: args[0].transpose(
        None if attrs.axes is None else [int(axis) for axis in attrs.axes]
    ),
    "reshape": _reshape,
    "shape_to_tensor": lambda args, attrs, shape: np.array(args[0]),
    "squeeze": _reshape,
    "strided_slice": _strided_slice,
    "take": _take,
    "tril": _triangle(np.tril),
    "triu": _triangle(np.triu),
    "zeros": _creation(0),
    "zeros_like": _creation(0),
}

# How much larger than its argument a result may be: kernels of convolutions are padded to whole strides.
GROWS = {"nn.pad": 4}
# Their arguments are numbers, so that rounding to a narrow float is the only one.
FROM_NUMBERS = frozenset({"arange"})
# Their result depends on the argument's type alone, so that the argument need not be constant.
SHAPE_ONLY = frozenset({"ones_like", "zeros_like", "full_like"})


def _operand(expr: tvm.ir.Expr) -> Any:
    """NumPy array, tuple of integers or integer that a constant argument stands for; None if not constant."""
    if is_constant(expr):
        return array_of(expr) if dtype_of(expr) in NUMPY_DTYPES else None
    if isinstance(expr, relax.ShapeExpr):
        return _numbers(expr)
    if isinstance(expr, tvm.ir.Tuple):
        if expr.fields and all(is_constant(field) for field in expr.fields):
            arrays = [_operand(field) for field in expr.fields]
            return None if any(array is None for array in arrays) else arrays
        return _numbers(expr)
    if isinstance(expr, tvm.tirx.IntImm | tvm.tirx.FloatImm):
        return expr.value
    return None


def _numbers(expr: tvm.ir.Expr) -> tuple[int, ...] | None:
    """A tuple of numbers; None where one is a size that is open."""
    found = integers(expr)
    return None if found is None or is_open(found) else found


@contextlib.contextmanager
def noting() -> Iterator[list[tvm.ir.GenericConst]]:
    """The constants that are folded inside: their memory is nobody else's."""
    made: list[tvm.ir.GenericConst] = []
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


def fold(call: tvm.ir.Call) -> tvm.ir.GenericConst | None:
    """The constant that a call computes, or None if it is not constant or not worth folding.

    Parameters
    ----------
    call : Call
        A normalised call of a Relax operator (its type is inferred).

    Returns
    -------
    GenericConst or None
        None where an argument is not constant, the operator has no entry in `MEANINGS`, or the result
        would grow the module by more than `GROWTH_LIMIT` bytes.
    """
    name, shape = op_name(call), shape_of(call)
    meaning = MEANINGS.get(name)
    if (
        meaning is None
        or shape is None
        or is_open(shape)
        or (name == "gather_nd" and int(call.attrs.batch_dims))
        or (name == "nn.pad" and str(call.attrs.pad_mode) != "constant")
    ):
        return None
    dtype = str(call.ty.dtype)
    if dtype not in NUMPY_DTYPES and name not in FROM_NUMBERS:
        return None
    numpy = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if not _pays(call.args, size_of(shape) * numpy.itemsize // GROWS.get(name, 1)):
        return None
    args: list[Any] = []
    for index, arg in enumerate(call.args):
        operand = 0 if name in SHAPE_ONLY and index == 0 else _operand(arg)
        if operand is None:
            return None
        args.append(operand)
    try:
        with np.errstate(all="ignore"):  # infinities and NaN are values here
            result = meaning(args, call.attrs, shape)
    except (IndexError, ValueError):  # an index outside its tensor, an integer to a negative power: no value
        return None
    assert result.shape == shape, (name, result.shape, shape)
    constant = relax.const(tensor_of(result, dtype))
    made = _made.get()
    if made is not None:
        made.append(constant)
    return constant


def _pays(args: list[tvm.ir.Expr], result_bytes: int) -> bool:
    """Whether constants of so many bytes may replace these arguments (cheap: looks at types only)."""
    replaced = 0
    for arg in args:
        fields = arg.fields if isinstance(arg, tvm.ir.Tuple) else [arg]
        for field in fields:
            shape = shape_of(field) if is_constant(field) else None
            if shape is not None:
                replaced += size_of(shape) * tvm.DataType(dtype_of(field)).itemsize
    return result_bytes <= max(GROWTH_LIMIT, replaced)
