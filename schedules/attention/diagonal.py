# SPDX-License-Identifier: Apache-2.0
"""Which keys a rule on rows and columns closes, and how vectors compare the places of both."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from tvm_ffi.structural import structural_map
from uir_tvm.schedule import make_tir as t
from uir_tvm.schedule.blocks import collect
from uir_tvm.schedule.wide_values import WIDE
from uir_tvm.schedules.attention.parts import Formula

#: Every whole number up to this is one in fp32.
EXACT = 1 << 24
#: Comparisons as ``small <= large + this``.
_ORDERS = {tirx.LE: (False, 0), tirx.LT: (False, -1), tirx.GE: (True, 0), tirx.GT: (True, -1)}


def last_key(score: Formula) -> Any | None:
    """The offset d where row i has no open key beyond i + d; None where the score says nothing of that kind.

    Parameters
    ----------
    score : Formula
        In (batch..., i, j): the softmax's argument.
    """
    expr = score.expr
    while isinstance(expr, tirx.Cast):
        expr = expr.value
    if not isinstance(expr, tirx.Select) or not _is_minus_infinity(expr.false_value):
        return None
    found = [_end(score, part) for part in _conjuncts(expr.condition)]
    return next((end for end in found if end is not None), None)


def places_in_floats(expr: Any) -> Any:
    """An expression whose comparisons of places are made in fp32, of which vectors have functions.

    Before: ``j <= i + d``.  After: ``float32(j) - float32(i + d) <= 0``: of a row and a column of numbers,
    both short, and exact where all places are less than `EXACT`.
    """

    def compared(node: Any) -> Any:
        if "int" not in str(node.a.ty) or not (collect(node, tvm.ir.Var) and not collect(node, TensorLoad)):
            return node
        far = node.a.astype(WIDE) - node.b.astype(WIDE)
        return type(node)(far, tirx.const(0, WIDE))

    return structural_map(expr, [(kind, compared) for kind in _ORDERS])


def _conjuncts(condition: Any) -> list[Any]:
    if isinstance(condition, tirx.And):
        return _conjuncts(condition.a) + _conjuncts(condition.b)
    return [condition]


def _end(score: Formula, condition: Any) -> Any | None:
    """d where the condition is ``j <= i + d``."""
    if type(condition) not in _ORDERS or "int" not in str(condition.a.ty):
        return None
    swapped, offset = _ORDERS[type(condition)]
    small, large = (condition.b, condition.a) if swapped else (condition.a, condition.b)
    analyzer = tvm.sym.Analyzer()
    room = Formula(score.variables, large - small)
    *batch, _row, _column = score.variables

    def at(row: int, column: int) -> Any:
        return analyzer.simplify(room(*batch, t.index(row), t.index(column)))

    start = at(0, 0)
    known = [analyzer.simplify(at(*place) - start) for place in ((1, 0), (0, 1), (5, 0), (0, 7))]
    steps = [int(step.value) if isinstance(step, tirx.IntImm) else None for step in known]
    return analyzer.simplify(start + offset) if steps == [1, -1, 5, -7] else None


def _is_minus_infinity(expr: Any) -> bool:
    return isinstance(expr, tirx.FloatImm) and float(expr.value) == -math.inf
