# SPDX-License-Identifier: Apache-2.0
"""Quasi-affine expressions and the bounds of valid boxes as TIR expressions (all in int64)."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from tvm import tirx
from tvm.ir import Expr

from ...igraph.affine import Affine
from ...igraph.space import Size, Space

INDEX = "int64"


@functools.lru_cache(4096)
def index(value: int) -> Expr:
    """An index constant."""
    return tirx.const(value, INDEX)


def as_int(value: Expr) -> int | None:
    """The value of a constant expression, else None."""
    return int(value.value) if isinstance(value, tirx.IntImm) else None


def distance(begin: Expr, end: Expr) -> Expr:
    """How many numbers there are from ``begin`` to ``end``; a constant where both are."""
    return tirx.max(end - begin, index(0))


class LoopScope:
    """The TIR variables of sizes, pid and the loops that are open, and what they range over."""

    def __init__(self, variables: Mapping[str, Expr], extents: Mapping[str, int | Size]) -> None:
        self.variables, self._extents = dict(variables), dict(extents)
        known = {n: e if isinstance(e, Size) else max(e, 1) for n, e in extents.items()}
        self._space = Space(known)
        self._made: dict[str, Expr] = {}

    def inside(self, name: str, variable: Expr, extent: int) -> LoopScope:
        """The scope of a loop's body."""
        return LoopScope({**self.variables, name: variable}, {**self._extents, name: extent})

    @property
    def sizes(self) -> frozenset[str]:
        """The names of the sizes: what is the same during a launch."""
        return frozenset(name for name, extent in self._extents.items() if isinstance(extent, Size))

    def expr(self, value: Affine) -> Expr:
        """The TIR expression of a quasi-affine one, or of an address."""
        text = str(value)
        made = self._made.get(text)
        if made is None:
            made = self._made[text] = self._expr(value)
        return made

    def _expr(self, value: Affine) -> Expr:
        total: Expr = index(0)
        for term in value.terms:
            if not isinstance(term.inner, Affine):
                atom = self.variables[term.var]
            elif term.kind == "product":
                atom = self.variables[term.var] * self.expr(term.inner)
            else:
                divide = tirx.floordiv if term.kind == "floordiv" else tirx.floormod
                atom = divide(self.expr(term.inner), index(term.divisor))
            total = total + atom * term.coeff
        return total + value.constant

    def bound(self, value: Affine | None, default: int | Expr, limit: int | Expr) -> Expr:
        """A bound of a valid box, clamped into ``[0, limit]``; ``default`` where there is none."""
        if value is None:
            return index(default) if isinstance(default, int) else default
        low, high = self.range(value)
        bound = self.expr(value)
        if low < 0:
            bound = tirx.max(bound, index(0))
        if not isinstance(limit, int):
            return tirx.min(bound, limit)
        return tirx.min(bound, index(limit)) if high > limit else bound

    def range(self, value: Affine) -> tuple[int, int]:
        """Least and greatest value over the scope (see `Space.range`)."""
        return self._space.range(value)
