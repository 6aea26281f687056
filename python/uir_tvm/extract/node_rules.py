# SPDX-License-Identifier: Apache-2.0
"""Expression nodes of TIR as iOps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tvm import tirx

from ..igraph import ISlice
from ..igraph.iops_scalar import BINARY, COMPARE, UNARY
from .emit import Operand
from .guard import choice, evaluate_guarded

if TYPE_CHECKING:
    from .expression import TileContext

Rule = Callable[["TileContext", Any, "ISlice | None"], Operand]


def _unary(name: str) -> Rule:
    return lambda c, e, into: c.unary(name, c.evaluate(e.a), into=into)


def _binary(name: str) -> Rule:
    return lambda c, e, into: c.binary(name, c.evaluate(e.a), c.evaluate(e.b), into)


def _compare(name: str) -> Rule:
    return lambda c, e, into: c.compare(name, c.evaluate(e.a), c.evaluate(e.b), into)


def _logical(name: str) -> Rule:
    def node(c: TileContext, e: Any, into: ISlice | None) -> Operand:
        a = c.evaluate(e.a)
        # the second side may rely on the first, as in i < n && x[i] > 0
        b = evaluate_guarded(c, e.b, None)
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
    **{getattr(tirx, row.node): _unary(name) for name, row in UNARY.items() if row.node},
    **{getattr(tirx, row.node): _binary(name) for name, row in BINARY.items() if row.node},
    **{getattr(tirx, row.node): _compare(name) for name, row in COMPARE.items() if row.node},
    tirx.And: _logical("and"),
    tirx.Or: _logical("or"),
    tirx.Not: lambda c, e, into: c.negation(c.evaluate(e.a), into),
    tirx.Cast: lambda c, e, into: c.cast(c.evaluate(e.value), c.dtype(e), into),
    tirx.Select: _select,
    tirx.Let: _let,
}
