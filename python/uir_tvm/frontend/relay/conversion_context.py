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
from ..fold import fold
from ..relax_view import Shape, array_of, dtype_of, is_constant, shape_of

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

    def emit(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """A variable of the expression's value; a constant where its arguments are."""
        expr = self.builder.normalize(expr)
        folded = fold(expr) if isinstance(expr, tvm.ir.Call) else None
        return folded if folded is not None else self.builder.emit(expr)

    def kernel(self, function: Callable[..., Any], *args: Any, **options: Any) -> tvm.ir.Expr:
        """The value of a TOPI function, where no operator of Relax computes it."""
        return self.builder.emit_te(function, *args, **options)

    def const(self, value: Any, dtype: str) -> tvm.ir.Expr:
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
        """Integers of a tensor that has to be constant."""
        return [int(n) for n in self.static(tensor, what).reshape(-1)]

    def refuse(
        self, what: str, need: str, remedy: str = "write the model with what is taken"
    ) -> FrontendError:
        """An error about the operator at hand."""
        return FrontendError(f"operator {self.operator!r} {what}", where=self.where, need=need, remedy=remedy)

    # what many converters are written in

    def cast(self, x: tvm.ir.Expr, dtype: str) -> tvm.ir.Expr:
        return x if dtype_of(x) == dtype else self.emit(relax.op.astype(x, dtype))

    def reshape(self, x: tvm.ir.Expr, shape: Sequence[int]) -> tvm.ir.Expr:
        return self.emit(relax.op.reshape(x, tuple(int(n) for n in shape)))

    def permute(self, x: tvm.ir.Expr, axes: Sequence[int]) -> tvm.ir.Expr:
        return self.emit(relax.op.permute_dims(x, [int(n) for n in axes]))

    def along(self, x: tvm.ir.Expr, axis: int, ndim: int) -> tvm.ir.Expr:
        """A vector as a tensor of ``ndim`` dimensions that lies along ``axis``."""
        shape = [1] * ndim
        shape[axis] = self.shape(x)[0]
        return self.reshape(x, shape)

    def slice(self, x: tvm.ir.Expr, axis: int, begin: int, end: int) -> tvm.ir.Expr:
        return self.emit(relax.op.strided_slice(x, [axis], [begin], [end]))
