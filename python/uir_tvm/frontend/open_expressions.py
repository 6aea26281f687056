# SPDX-License-Identifier: Apache-2.0
"""Expressions of TVM in the sizes that a model leaves open, as `OpenSize`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import tvm
from tvm import tirx

from ..sizes.open_arithmetic import least, most
from ..sizes.open_size import AnySize, OpenSize
from ..sizes.size_space import SizeSpace

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    tirx.Add: operator.add,
    tirx.Sub: operator.sub,
    tirx.Mul: operator.mul,
    tirx.FloorDiv: operator.floordiv,
    tirx.FloorMod: operator.mod,
    tirx.Min: least,
    tirx.Max: most,
}


def expressions(shape: Iterable[AnySize]) -> list[Any]:
    """Sizes as TVM takes them."""
    return [size.space.expression(size) if isinstance(size, OpenSize) else size for size in shape]


def open_size_of(expr: Any, space: SizeSpace) -> OpenSize | int | None:
    """An expression as a size of a space; None where it holds anything but its symbols and whole numbers."""
    if isinstance(expr, tirx.IntImm):
        return int(expr.value)
    if isinstance(expr, tvm.ir.Var):
        return space.meet(str(expr.name), expr)
    if isinstance(expr, tirx.Cast):
        return open_size_of(expr.value, space)
    compute = _OPERATORS.get(type(expr))
    if compute is None:
        return None
    left, right = open_size_of(expr.a, space), open_size_of(expr.b, space)
    if left is None or right is None:
        return None
    try:
        return compute(left, right)
    except ArithmeticError:  # a quotient of what may be negative: of what is not, from now on
        if not isinstance(left, OpenSize) or left < 0:
            return None
    try:
        return compute(left, right)
    except ArithmeticError:
        return None
