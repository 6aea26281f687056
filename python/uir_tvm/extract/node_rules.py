# SPDX-License-Identifier: Apache-2.0
"""Expression nodes of TIR as iOps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm import tirx

from ..igraph import ISlice
from .emit import Guard, Operand
from .guard import choice, evaluate_guarded

if TYPE_CHECKING:
    from .expression import TileContext

Rule = Callable[["TileContext", Any, "ISlice | None"], Operand]


def _binary(name: str) -> Rule:
    return lambda c, e, into: c.binary(name, c.evaluate(e.a), c.evaluate(e.b), into)


def _compare(name: str) -> Rule:
    return lambda c, e, into: c.compare(name, c.evaluate(e.a), c.evaluate(e.b), into)


def _logical(name: str) -> Rule:
    def node(c: TileContext, e: Any, into: ISlice | None) -> Operand:
        a = c.evaluate(e.a)
        # the second side may rely on the first, as in i < n && x[i] > 0
        b = evaluate_guarded(c, e.b, lambda: Guard(None, lambda: a if name == "and" else c.negation(a)))
        return c.logical(name, a, b, into)

    return node


def _let(context: TileContext, expr: Any, into: ISlice | None) -> Operand:
    context.lets[expr.var] = context.evaluate(expr.value)
    return context.evaluate(expr.body, into)


def _select(context: TileContext, expr: Any, into: ISlice | None) -> Operand:
    # TVM may turn a Select's loads into guarded ones; nothing relies on both sides being legal
    return choice(context, expr.condition, expr.true_value, expr.false_value, into)


#: What each node becomes.
NODES: dict[type, Rule] = {
    tirx.Add: _binary("add"),
    tirx.Sub: _binary("sub"),
    tirx.Mul: _binary("mul"),
    tirx.Div: _binary("div"),
    tirx.Mod: _binary("truncmod"),
    tirx.FloorDiv: _binary("floordiv"),
    tirx.FloorMod: _binary("mod"),
    tirx.Max: _binary("max"),
    tirx.Min: _binary("min"),
    tirx.BitwiseAnd: _binary("and"),
    tirx.BitwiseOr: _binary("or"),
    tirx.BitwiseXor: _binary("xor"),
    tirx.LShift: _binary("shl"),
    tirx.RShift: _binary("shr"),
    tirx.EQ: _compare("eq"),
    tirx.NE: _compare("ne"),
    tirx.LT: _compare("lt"),
    tirx.LE: _compare("le"),
    tirx.GT: _compare("gt"),
    tirx.GE: _compare("ge"),
    tirx.And: _logical("and"),
    tirx.Or: _logical("or"),
    tirx.Not: lambda c, e, into: c.negation(c.evaluate(e.a), into),
    tirx.BitwiseNot: lambda c, e, into: c.unary("not", c.evaluate(e.a), into=into),
    tirx.Cast: lambda c, e, into: c.cast(c.evaluate(e.value), c.dtype(e), into),
    tirx.Select: _select,
    tirx.Let: _let,
}
