# SPDX-License-Identifier: Apache-2.0
"""Conditions as valid boxes of a tile.

A box has four bounds, each quasi-affine and clamped into the tile when it is read.  A condition that
no tile variable occurs in makes the box empty or leaves it whole: ``d > 0`` as an end bound of
``d * extent``, as a begin bound of ``(1 - d) * extent``.
"""

from __future__ import annotations

from typing import Any

import attrs
import tvm
from tvm import tirx

from ..igraph.affine import Affine, affine
from ..igraph.all_positive import all_positive
from ..igraph.space import Space
from ..igraph.tir_calls import call_name
from .affine_from_tir import AffineConverter
from .refusals import NeedsSerialError


@attrs.frozen(eq=False)
class Box:
    """Bounds of rows and columns; None = that side of the tile."""

    row_begin: Affine | None = None
    row_end: Affine | None = None
    col_begin: Affine | None = None
    col_end: Affine | None = None

    @property
    def bounds(self) -> tuple[Affine | None, Affine | None, Affine | None, Affine | None]:
        """In the order of the fields."""
        return self.row_begin, self.row_end, self.col_begin, self.col_end

    @property
    def key(self) -> str:
        """Text that two boxes share exactly when they are equal."""
        return ",".join("" if b is None else str(b) for b in self.bounds)

    def slice_bounds(self) -> dict[str, Any]:
        """The keyword arguments of an `ISlice`."""
        return {"rows": (self.row_begin, self.row_end), "cols": (self.col_begin, self.col_end)}

    def shrink(self, tile: tuple[int, int], shape: tuple[int, int]) -> Box:
        """The box of a value that only depends on some axes of the tile.

        An axis of extent 1 is valid where any of the tile's is: an end bound says so as it stands, a
        begin bound b only excludes the whole axis when ``b >= extent``.
        """
        row, col = (shape[k] != tile[k] for k in (0, 1))
        return Box(
            _whole(self.row_begin, tile[0]) if row else self.row_begin,
            self.row_end,
            _whole(self.col_begin, tile[1]) if col else self.col_begin,
            self.col_end,
        )

    def intersect(self, other: Box, space: Space) -> Box | None:
        """The common part; None when two bounds of a side cannot be told apart by their ranges."""
        merged: list[Affine | None] = []
        for side, (a, b) in enumerate(zip(self.bounds, other.bounds, strict=True)):
            if a is None or b is None:
                merged.append(b if a is None else a)
                continue
            chosen = space.greatest(a, b) if side % 2 == 0 else space.least(a, b)
            if chosen is None:
                return None
            merged.append(chosen)
        return Box(*merged)


def _whole(begin: Affine | None, extent: int) -> Affine | None:
    if begin is None:
        return None
    whole = begin // extent
    return None if whole == 0 else whole


FULL = Box()


@attrs.frozen
class Atom:
    """``expr >= 1``, an integer comparison in normal form."""

    expr: Affine


class NotABoxError(Exception):
    """A condition that is no conjunction of affine bounds."""


def conjunction(condition: Any, converter: AffineConverter, negate: bool = False) -> list[Atom]:
    """A condition as atoms that all hold; those that always hold are left out.

    Raises
    ------
    NotABoxError
        It has a disjunction, a disequality, or a side that is not affine.
    """
    known = converter.decide(condition)
    if known is not None:
        return [] if known is not negate else [Atom(affine(0))]
    if isinstance(condition, tvm.ir.Call) and call_name(condition) == "likely":
        return conjunction(condition.args[0], converter, negate)
    if isinstance(condition, tirx.Not):
        return conjunction(condition.a, converter, not negate)
    if isinstance(condition, tirx.Or if negate else tirx.And):
        return conjunction(condition.a, converter, negate) + conjunction(condition.b, converter, negate)
    parts = _extremum_parts(condition, negate)
    if parts is not None:
        return [atom for part in parts for atom in conjunction(part, converter, negate)]
    kind = type(condition)
    if kind not in _NEGATED or "int" not in str(condition.a.ty):
        raise NotABoxError(str(condition))
    kind = _NEGATED[kind] if negate else kind
    a, b = converter.try_convert(condition.a), converter.try_convert(condition.b)
    if kind not in _ATOMS or a is None or b is None:
        raise NotABoxError(str(condition))
    atoms = (converter.space.fold(e) for e in _ATOMS[kind](a, b))
    return [Atom(e) for e in atoms if converter.space.sign(e) != 1]


def is_conjunction(condition: Any, converter: AffineConverter) -> bool:
    """Whether `conjunction` accepts a condition."""
    try:
        conjunction(condition, converter)
    except NotABoxError:
        return False
    return True


def _extremum_parts(condition: Any, negate: bool) -> list[Any] | None:
    """``x < min(a, b)`` as ``x < a`` and ``x < b``, and the like; None for other conditions."""
    kind = type(condition)
    if kind not in _SMALLER and kind not in _GREATER:
        return None
    # which extremum on the right (and the other one on the left) makes a conjunction
    right = tirx.Min if (kind in _SMALLER) is not negate else tirx.Max
    left = tirx.Max if right is tirx.Min else tirx.Min
    if isinstance(condition.b, right):
        return [kind(condition.a, condition.b.a), kind(condition.a, condition.b.b)]
    if isinstance(condition.a, left):
        return [kind(condition.a.a, condition.b), kind(condition.a.b, condition.b)]
    return None


_SMALLER = (tirx.LT, tirx.LE)
_GREATER = (tirx.GT, tirx.GE)

_NEGATED: dict[type, type] = {
    tirx.LT: tirx.GE,
    tirx.GE: tirx.LT,
    tirx.LE: tirx.GT,
    tirx.GT: tirx.LE,
    tirx.EQ: tirx.NE,
    tirx.NE: tirx.EQ,
}

#: a ? b as expressions that are all >= 1.
_ATOMS: dict[type, Any] = {
    tirx.LT: lambda a, b: (b - a,),
    tirx.LE: lambda a, b: (b - a + 1,),
    tirx.GT: lambda a, b: (a - b,),
    tirx.GE: lambda a, b: (a - b + 1,),
    tirx.EQ: lambda a, b: (b - a + 1, a - b + 1),
}


def box_of(
    atoms: list[Atom],
    tile: tuple[int, int],
    names: tuple[str | None, str | None],
    space: Space,
    jointly: bool = False,
) -> Box:
    """The box in which all atoms hold.

    Parameters
    ----------
    tile : (rows, cols).
    names : the variables of rows and columns; None where the tile has extent 1.
    jointly : whether atoms of no tile variable may have one side between them all
        (`igraph.all_positive`), where each for itself finds none.

    Raises
    ------
    NeedsSerialError
        An atom couples rows and columns, or a side has two bounds that ranges cannot order; it names
        the variable whose loop must become serial.
    """
    box = FULL
    uniform: list[Affine] = []
    for expr in _needed([_without_division(atom.expr, names) for atom in atoms], space):
        used = [k for k in (0, 1) if names[k] in expr.variables()]
        if not used:
            uniform.append(expr)
            continue
        axis = used[0]
        name = names[axis]
        assert name is not None
        if len(used) == 2 or not expr.is_linear_in(name):
            raise NeedsSerialError(name)
        joined = box.intersect(_bound(expr, name, axis), space)
        if joined is None:
            raise NeedsSerialError(name)
        box = joined
    try:
        return _with_uniform(box, uniform, tile, names, space)
    except (NeedsSerialError, NotABoxError):
        if not jointly or len(uniform) < 2:
            raise
    return _with_uniform(box, [all_positive(uniform, space)], tile, names, space)


def _with_uniform(
    box: Box, exprs: list[Affine], tile: tuple[int, int], names: tuple[str | None, str | None], space: Space
) -> Box:
    for expr in exprs:
        box = _add_uniform(box, expr, tile, names, space)
    return box


def _needed(exprs: list[Affine], space: Space) -> list[Affine]:
    """Those of some expressions, all at least 1, that do not follow from another.

    Where sizes decide how often a loop runs, ``(s + 7) / 8 > i``, and how far its last tile goes,
    ``s > 8*i + j``, the one follows from the other.
    """
    if not space.sizes:
        return exprs
    out = list(exprs)
    for expr in exprs:
        plain = _without_quotient(expr)
        rest = [other for other in out if other is not expr]
        if any(_follows(plain, other, space) for other in rest):
            out = rest
    return out


def _follows(expr: Affine, other: Affine, space: Space) -> bool:
    """Whether ``expr >= other``, seen by their ranges."""
    return space.range(space.fold(expr - other))[0] >= 0


def _without_quotient(expr: Affine) -> Affine:
    """``floor(e / k) + r >= 1`` as ``e + k*r - k + 1 >= 1``."""
    for term in expr.terms:
        if term.kind == "floordiv" and term.coeff == 1:
            k = int(term.divisor)
            return term.argument + (expr - term.expr) * k - (k - 1)
    return expr


def _bound(expr: Affine, name: str, axis: int) -> Box:
    """``coeff * name + rest >= 1`` as a bound of one axis."""
    coeff, rest = expr.coefficient(name), expr.without([name])
    sides: list[Affine | None] = [None] * 4
    if coeff > 0:
        sides[2 * axis] = (coeff - rest) // coeff
    else:
        sides[2 * axis + 1] = (rest - 1) // -coeff + 1
    return Box(*sides)


def _add_uniform(
    box: Box, expr: Affine, tile: tuple[int, int], names: tuple[str | None, str | None], space: Space
) -> Box:
    """Make the box empty unless ``expr >= 1``, in a side that is free or comparable."""
    for side in (1, 3, 0, 2):
        extent = tile[side // 2]
        sides: list[Affine | None] = [None] * 4
        sides[side] = expr * extent if side % 2 else (affine(1) - expr) * extent
        joined = box.intersect(Box(*sides), space)
        if joined is not None:
            return joined
    for name in names:
        if name is not None:
            raise NeedsSerialError(name)
    raise NotABoxError(str(expr))


def _without_division(expr: Affine, names: tuple[str | None, str | None]) -> Affine:
    """``floor(e/k) + r >= 1`` as ``e + k*r - k + 1 >= 1``; ``r - floor(e/k) >= 1`` as ``k*r - e >= 1``."""
    for term in expr.terms:
        if term.kind != "floordiv" or abs(term.coeff) != 1:
            continue
        inner, k = term.argument, term.divisor
        if not any(name in inner.variables() for name in names):
            continue
        rest = expr - (inner // k) * term.coeff
        return _without_division(inner + rest * k - (k - 1) if term.coeff == 1 else rest * k - inner, names)
    return expr
