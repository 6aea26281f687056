# SPDX-License-Identifier: Apache-2.0
"""Intrinsic calls of TIR as iOps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..igraph import ISlice
from ..igraph.iops_scalar import BINARY, UNARY
from .emit import Const, Operand

if TYPE_CHECKING:
    from .expression import TileContext

Rule = Callable[["TileContext", Sequence[Operand], "ISlice | None"], Operand]


def _unary(name: str) -> Rule:
    return lambda c, args, into: c.unary(name, args[0], into=into)


def _binary(name: str) -> Rule:
    return lambda c, args, into: c.binary(name, args[0], args[1], into)


def _scaled(name: str, factor: float) -> Rule:
    """``factor * f(x)``."""
    return lambda c, args, into: c.unary("muls", c.unary(name, args[0]), (factor,), into)


def _exp10(c: TileContext, args: Sequence[Operand], into: ISlice | None) -> Operand:
    # exp(x * log(10)) would multiply the rounding of the product by x
    return c.binary("pow", Const(10.0, args[0].dtype), args[0], into)


def _fma(c: TileContext, args: Sequence[Operand], into: ISlice | None) -> Operand:
    return c.binary("add", c.binary("mul", args[0], args[1]), args[2], into)


def _hypot(c: TileContext, args: Sequence[Operand], into: ISlice | None) -> Operand:
    squares = [c.binary("mul", x, x) for x in args]
    return c.unary("sqrt", c.binary("add", squares[0], squares[1]), into=into)


def _copysign(c: TileContext, args: Sequence[Operand], into: ISlice | None) -> Operand:
    magnitude = c.unary("abs", args[0])
    zero = Const(0.0, args[1].dtype)
    # 1/x tells -0.0 from 0.0, but -inf not from inf; nothing tells the sign of NaN: it counts as positive
    below = c.compare("lt", args[1], zero)
    negative = c.logical("or", below, c.compare("lt", c.unary("recip", args[1]), zero))
    return c.select(negative, c.unary("neg", magnitude), magnitude, into)


#: What each call becomes, by its name without the dialect (``tirx.exp`` and ``prim.exp`` are one).
CALLS: dict[str, Rule] = {
    **{call: _unary(name) for name, row in UNARY.items() for call in row.calls},
    **{call: _binary(name) for name, row in BINARY.items() for call in row.calls},
    "exp10": _exp10,
    "log10": _scaled("log", 1.0 / math.log(10.0)),
    "fma": _fma,
    "hypot": _hypot,
    "copysign": _copysign,
}
