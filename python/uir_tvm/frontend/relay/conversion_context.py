# SPDX-License-Identifier: Apache-2.0
"""What converters of operators emit with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import relax

from ...errors import FrontendError, ShapeError
from ...sizes.open_arithmetic import is_open
from ...sizes.open_size import AnySize, OpenSize
from ...sizes.size_space import open_sizes
from ..agreeing_sizes import BROADCASTING, ask_elementwise, ask_joined, ask_product
from ..fold import fold
from ..open_expressions import expressions
from ..relax_view import Shape, array_of, dtype_of, is_constant, op_name, shape_of
from .open_values import OpenValues, open_elements

#: A tensor, or a tuple of values.
Value = Any


class ConversionContext:
    """A block of Relax that is being built, and the operator at hand.

    Parameters
    ----------
    builder : relax.BlockBuilder
        In a dataflow block.
    """

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self.builder = builder
        self.operator = self.where = ""
        self._open = OpenValues()

    def emit(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """A variable of the expression's value; a constant where its arguments are."""
        expr = self.builder.normalize(expr)
        if isinstance(expr, tvm.ir.Call):
            folded = fold(expr)
            if folded is not None:
                return folded
            elements = self._open.computed(expr)
            if elements is not None:
                return self.const(elements, dtype_of(expr))
            _agree(expr)
        return self.builder.emit(expr)

    def kernel(self, function: Callable[..., Any], *args: Any, **options: Any) -> tvm.ir.Expr:
        """The value of a TOPI function, where no operator of Relax computes it."""
        return self.builder.emit_te(function, *args, **options)

    def const(self, value: Any, dtype: str) -> tvm.ir.Expr:
        """A tensor of numbers; where some are open sizes, one that is computed of them at each call."""
        elements = open_elements(value)
        if elements is not None:
            flat = relax.op.shape_to_tensor(relax.ShapeExpr(expressions(elements.flat)))
            shaped = relax.op.astype(relax.op.reshape(flat, elements.shape), dtype)
            tensor = self.builder.emit(shaped)
            self._open.keep(tensor, elements)
            return tensor
        return relax.const(np.asarray(value).astype(getattr(ml_dtypes, dtype, dtype)), dtype)

    def like(self, value: Any, tensor: tvm.ir.Expr) -> tvm.ir.Expr:
        """A constant of a tensor's dtype."""
        return self.const(value, dtype_of(tensor))

    def shape(self, tensor: tvm.ir.Expr) -> Shape:
        """A tensor's sizes."""
        found = shape_of(tensor)
        if found is None:
            raise ShapeError(
                f"operator {self.operator!r} meets a shape that depends on data",
                where=self.where,
                need="fixed shapes",
                remedy="give the input's shape: shapes={name: (...)}",
            )
        return found

    def ndim(self, tensor: tvm.ir.Expr) -> int:
        return len(self.shape(tensor))

    def static(self, tensor: tvm.ir.Expr, what: str) -> np.ndarray:
        """The values of a tensor that has to be constant."""
        if not is_constant(tensor):
            raise FrontendError(
                f"operator {self.operator!r} has {what} that depends on data",
                where=self.where,
                need="a constant",
                remedy="fix it in the model, or pass it in params",
            )
        return array_of(tensor)

    def numbers(self, tensor: tvm.ir.Expr, what: str) -> list[int]:
        """Integers of a tensor that has to be constant, or computed of sizes."""
        elements = self._open.of(tensor)
        if elements is not None:
            return list(elements.reshape(-1))
        return [int(n) for n in self.static(tensor, what).reshape(-1)]

    def refuse(
        self, what: str, need: str, remedy: str = "write the model with what is taken"
    ) -> FrontendError:
        """An error about the operator at hand."""
        return FrontendError(f"operator {self.operator!r} {what}", where=self.where, need=need, remedy=remedy)

    # what many converters are written in

    def cast(self, x: tvm.ir.Expr, dtype: str) -> tvm.ir.Expr:
        return x if dtype_of(x) == dtype else self.emit(relax.op.astype(x, dtype))

    def reshape(self, x: tvm.ir.Expr, shape: Sequence[AnySize]) -> tvm.ir.Expr:
        sizes = [n if isinstance(n, OpenSize) else int(n) for n in shape]
        return self.emit(relax.op.reshape(x, tuple(expressions(sizes))))

    def permute(self, x: tvm.ir.Expr, axes: Sequence[int]) -> tvm.ir.Expr:
        return self.emit(relax.op.permute_dims(x, [int(n) for n in axes]))

    def along(self, x: tvm.ir.Expr, axis: int, ndim: int) -> tvm.ir.Expr:
        """A vector as a tensor of ``ndim`` dimensions that lies along ``axis``."""
        shape = [1] * ndim
        shape[axis] = self.shape(x)[0]
        return self.reshape(x, shape)

    def slice(self, x: tvm.ir.Expr, axis: int, begin: AnySize, end: AnySize) -> tvm.ir.Expr:
        """The elements of an axis between two places inside it."""
        bounds = [expressions([bound]) for bound in (begin, end)]
        within = is_open((begin, end, *self.shape(x)))
        return self.emit(relax.op.strided_slice(x, [axis], *bounds, assume_inbound=within))


def _agree(call: tvm.ir.Call) -> None:
    """Ask what an operator of Relax wants to be equal, of sizes that are open."""
    name = op_name(call)
    if open_sizes() is None or (name not in BROADCASTING and name not in ("concat", "matmul")):
        return
    operands = call.args[0].fields if name == "concat" else call.args
    shapes = [shape for operand in operands if (shape := shape_of(operand)) is not None]
    if len(shapes) != len(operands):
        return
    if name in BROADCASTING:
        ask_elementwise(shapes)
    elif name == "concat":
        ask_joined(shapes, int(call.attrs.axis or 0))
    else:
        ask_product(shapes)
