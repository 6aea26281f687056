# SPDX-License-Identifier: Apache-2.0
"""Tensors of whole numbers that are computed of open sizes, and what their elements are.

Models that take several shapes compute others of them: ``take(shape_of(%x), 0)``, ``concatenate`` of such, a
shape for ``dyn.reshape``. Their elements are `OpenSize` and ``int`` in arrays of dtype ``object``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ...sizes.open_arithmetic import is_open, least, most, quotient
from ...sizes.open_size import OpenSize
from ..fold import MEANINGS, Meaning
from ..relax_view import address_of, array_of, dtype_of, integers, is_constant, op_name, shape_of

#: More numbers than this are no shape.
MOST_ELEMENTS = 64
#: In these sizes are counted.
WHOLE = frozenset({"int32", "int64"})


def _elements(function: Any) -> Meaning:
    apply = np.frompyfunc(function, 2, 1)
    return lambda args, attrs, shape: np.asarray(apply(*args), object)


_OF_NUMBERS = """add subtract multiply floor_divide floor_mod astype reshape expand_dims squeeze concat
    strided_slice permute_dims broadcast_to sum prod where equal not_equal less less_equal greater
    greater_equal""".split()
#: Operators that sizes go through; what they are of numbers they are of sizes, where nothing else stands.
_MEANINGS: dict[str, Meaning] = {
    **{name: MEANINGS[name] for name in _OF_NUMBERS},
    "divide": _elements(quotient),
    "take": lambda args, attrs, shape: MEANINGS["take"]([args[0], args[1].astype(np.int64)], attrs, shape),
    "maximum": _elements(most),
    "minimum": _elements(least),
}


class OpenValues:
    """What is known of a program's tensors of sizes."""

    def __init__(self) -> None:
        # the variable is kept, so that no other has its address
        self._known: dict[int, tuple[tvm.ir.Expr, np.ndarray]] = {}

    def keep(self, tensor: tvm.ir.Expr, elements: np.ndarray) -> None:
        """Note what a tensor's elements are."""
        self._known[address_of(tensor)] = tensor, elements

    def of(self, tensor: tvm.ir.Expr) -> np.ndarray | None:
        """A tensor's elements, where they are open sizes; None where they are not, or not known."""
        found = self._known.get(address_of(tensor))
        return None if found is None else found[1]

    def computed(self, call: tvm.ir.Call) -> np.ndarray | None:
        """The elements of a call's result; None where they are not known, or no operand is open.

        Raises
        ------
        ArithmeticError
            What is computed is no size for all sizes.
        """
        if not self._known or not isinstance(call.ty, relax.TensorType):
            return None
        meaning, dtype, shape = _MEANINGS.get(op_name(call)), dtype_of(call), shape_of(call)
        if meaning is None or dtype not in (*WHOLE, "bool") or shape is None or is_open(shape):
            return None
        if not any(self.of(field) is not None for arg in call.args for field in _fields(arg)):
            return None
        args = [self._operand(arg) for arg in call.args]
        if any(arg is None for arg in args):
            return None
        made = np.asarray(meaning(args, call.attrs, shape), object)
        assert made.shape == tuple(shape), (call, made.shape)
        return made

    def _operand(self, expr: tvm.ir.Expr) -> Any:
        known = self.of(expr)
        if known is not None:
            return known
        if is_constant(expr):
            small = dtype_of(expr) in (*WHOLE, "bool") and math.prod(shape_of(expr) or ()) <= MOST_ELEMENTS
            return array_of(expr).astype(object) if small else None
        if isinstance(expr, tvm.ir.Tuple) and any(isinstance(f.ty, relax.TensorType) for f in expr.fields):
            parts = [self._operand(field) for field in expr.fields]
            return None if any(part is None for part in parts) else parts
        if isinstance(expr, relax.ShapeExpr | tvm.ir.Tuple):
            return integers(expr)
        return expr.value if isinstance(expr, tvm.tirx.IntImm) else None


def open_elements(value: Any) -> np.ndarray | None:
    """Numbers some of which are open sizes as an array of dtype ``object``; None of numbers alone."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return None
    elements = np.asarray(value, object)
    return elements if any(isinstance(each, OpenSize) for each in elements.flat) else None


def _fields(expr: tvm.ir.Expr) -> Sequence[tvm.ir.Expr]:
    return expr.fields if isinstance(expr, tvm.ir.Tuple) else [expr]
