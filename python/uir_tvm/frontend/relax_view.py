# SPDX-License-Identifier: Apache-2.0
"""Reading Relax expressions as plain Python: static shapes, dtype names, constant arrays, attributes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..sizes.open_size import OpenSize
from ..sizes.size_space import open_sizes
from ..tensor_view import view_of
from .open_expressions import open_size_of

#: So many shapes are kept.
MOST_SHAPES = 1 << 12
#: Shapes of numbers by their addresses, which are theirs alone while they are kept.
_shapes: dict[int, tuple[relax.ShapeExpr, tuple[int, ...]]] = {}

#: Numbers; inside `reading_open_sizes` they may be `OpenSize`.
Shape = tuple[int, ...]

# Constants of more elements are weights, not masks: reading them to find a uniform value cannot pay.
ELEMENT_LIMIT = 1 << 22

# NumPy computes with these; others (bfloat16, float8) it only stores.
NUMPY_DTYPES = frozenset(
    "bool float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
)


def op_name(expr: tvm.ir.Expr | None) -> str:
    """Name of the operator that a call applies, without the ``relax.`` prefix; empty for anything else."""
    if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.Op):
        return str(expr.op.name).removeprefix("relax.")
    return ""


def shape_of(expr: tvm.ir.Expr) -> Shape | None:
    """Shape of a tensor expression; None where it is no tensor or a dimension is not a number."""
    if not isinstance(expr.ty, relax.TensorType) or not isinstance(expr.ty.shape, relax.ShapeExpr):
        return None
    return integers(expr.ty.shape)


def dtype_of(expr: tvm.ir.Expr) -> str:
    """Dtype name of a tensor expression, such as ``float32``."""
    return str(expr.ty.dtype)


def size_of(shape: Shape) -> int:
    """Number of elements."""
    return prod(shape)


def integers(value: Any) -> Shape | None:
    """A shape, a tuple of integer expressions or a sequence as a tuple; None if not all are numbers."""
    if isinstance(value, relax.ShapeExpr):
        return _shape(value)
    if isinstance(value, tvm.ir.Tuple):
        value = value.fields
    result = []
    for item in value:
        number = integer(item)
        if number is None:
            return None
        result.append(number)
    return tuple(result)


def _shape(value: relax.ShapeExpr) -> Shape | None:
    """`integers` of a shape; of one that is asked for again and again it is known."""
    address = int(value.__chandle__())
    known = _shapes.get(address)
    if known is not None:
        return known[1]
    found = integers(value.values)
    if found is not None and all(type(each) is int for each in found):
        if len(_shapes) >= MOST_SHAPES:
            _shapes.clear()
        _shapes[address] = value, found
    return found


def integer(value: Any) -> int | None:
    """A number from an integer or an integer constant of the IR; None for anything else.

    Inside `reading_open_sizes` an expression in its symbols is an `OpenSize`.
    """
    if isinstance(value, tvm.tirx.IntImm):
        return int(value.value)
    if isinstance(value, int | np.integer):
        return int(value)
    space = open_sizes()
    if space is None:
        return None
    return value if isinstance(value, OpenSize) else open_size_of(value, space)  # type: ignore[return-value]


def axes_of(axes: Any, ndim: int) -> Shape:
    """Axis attribute (None, a number or a sequence, maybe negative) as a sorted tuple of axes from 0."""
    if axes is None:
        return tuple(range(ndim))
    numbers = axes if isinstance(axes, list | tuple) or hasattr(axes, "__len__") else [axes]
    return tuple(sorted(int(axis) % ndim for axis in numbers))


def permutation_of(call: tvm.ir.Call, ndim: int) -> Shape:
    """Axes of a permute_dims call; without the attribute it reverses them."""
    axes = call.attrs.axes
    return tuple(reversed(range(ndim))) if axes is None else tuple(int(a) % ndim for a in axes)


def is_constant(expr: tvm.ir.Expr) -> bool:
    """Whether the expression is a tensor constant."""
    return isinstance(expr, tvm.ir.GenericConst) and isinstance(expr.ty, relax.TensorType)


def array_of(expr: tvm.ir.Expr) -> np.ndarray:
    """The elements of a tensor constant, to be read."""
    assert is_constant(expr)
    return view_of(expr.value)


def address_of(expr: tvm.ir.Expr) -> int:
    """Identity of the object behind an expression, for as long as something holds it."""
    return int(expr.__chandle__())


def uniform_of(expr: tvm.ir.Expr) -> np.generic | None:
    """The one value of a constant of equal elements; None where they differ, be it in the sign of a zero."""
    shape = shape_of(expr) if is_constant(expr) else None
    if shape is None or not 0 < size_of(shape) <= ELEMENT_LIMIT or dtype_of(expr) not in NUMPY_DTYPES:
        return None
    array = array_of(expr)
    first = array.flat[0]
    if not bool((array == first).all()):
        return None
    signed = first == 0 and array.dtype.kind not in "biu"
    return None if signed and bool((np.signbit(array) != np.signbit(first)).any()) else first
