# SPDX-License-Identifier: Apache-2.0
"""Quasi-affine expressions and the bounds of valid boxes as TIR expressions (all in int64)."""

from __future__ import annotations

from collections.abc import Mapping

from tvm import tirx
from tvm.ir import Expr

from ...igraph.affine import Affine
from ...igraph.space import Space

INDEX = "int64"


def index(value: int) -> Expr:
    """An index constant."""
    return tirx.const(value, INDEX)


def as_int(value: Expr) -> int | None:
    """The value of a constant expression, else None."""
    return int(value.value) if isinstance(value, tirx.IntImm) else None


def plus(a: Expr, b: Expr | int) -> Expr:
    """``a + b`` without the additions of zero."""
    b = index(b) if isinstance(b, int) else b
    x, y = as_int(a), as_int(b)
    if x is not None and y is not None:
        return index(x + y)
    return b if x == 0 else a if y == 0 else a + b


def times(a: Expr, factor: int) -> Expr:
    """``a * factor``, folded where it can be."""
    value = as_int(a)
    if value is not None:
        return index(value * factor)
    return a if factor == 1 else index(0) if factor == 0 else a * index(factor)


def least(a: Expr, b: Expr) -> Expr:
    """``min(a, b)``, folded where it can be."""
    x, y = as_int(a), as_int(b)
    return index(min(x, y)) if x is not None and y is not None else tirx.min(a, b)


def greatest(a: Expr, b: Expr) -> Expr:
    """``max(a, b)``, folded where it can be."""
    x, y = as_int(a), as_int(b)
    return index(max(x, y)) if x is not None and y is not None else tirx.max(a, b)


class LoopScope:
    """The TIR variables of pid and the loops that are open, and what they range over."""

    def __init__(self, variables: Mapping[str, Expr], extents: Mapping[str, int]) -> None:
        self.variables, self.extents = dict(variables), dict(extents)
        self._space = Space({name: max(extent, 1) for name, extent in extents.items()})

    def inside(self, name: str, variable: Expr, extent: int) -> LoopScope:
        """The scope of a loop's body."""
        return LoopScope({**self.variables, name: variable}, {**self.extents, name: extent})

    def expr(self, value: Affine) -> Expr:
        """The TIR expression of a quasi-affine one."""
        total: Expr = index(0)
        for term in value.terms:
            if not isinstance(term.inner, Affine):
                atom = self.variables[term.var]
            else:
                divide = tirx.floordiv if term.kind == "floordiv" else tirx.floormod
                atom = divide(self.expr(term.inner), index(term.divisor))
            total = plus(total, times(atom, term.coeff))
        return plus(total, value.constant)

    def bound(self, value: Affine | None, default: int, limit: int) -> Expr:
        """A bound of a valid box, clamped into ``[0, limit]``; ``default`` where there is none."""
        if value is None:
            return index(default)
        low, high = self.range(value)
        bound = self.expr(value)
        if low < 0:
            bound = greatest(bound, index(0))
        return least(bound, index(limit)) if high > limit else bound

    def range(self, value: Affine) -> tuple[int, int]:
        """Least and greatest value over the scope (see `Space.range`)."""
        return self._space.range(value)
