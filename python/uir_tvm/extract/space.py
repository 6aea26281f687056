# SPDX-License-Identifier: Apache-2.0
"""Quasi-affine expressions over variables of known ranges, and the simplifications that ranges allow."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..igraph.affine import Affine, Term, affine, var


class Space:
    """Variables with their ranges.

    Parameters
    ----------
    extents : Mapping[str, int]
        ``name -> extent``: the variable runs over ``[0, extent)``.
    """

    def __init__(self, extents: Mapping[str, int]) -> None:
        self.extents = dict(extents)

    def bounds(self, expr: Affine) -> tuple[int, int]:
        """An interval that holds every value: exact for sums of distinct variables."""
        low = high = expr.constant
        for term in expr.terms:
            lo, hi = self._atom_bounds(term)
            a, b = term.coeff * lo, term.coeff * hi
            low, high = low + min(a, b), high + max(a, b)
        return low, high

    def _atom_bounds(self, term: Term) -> tuple[int, int]:
        if term.kind == "var":
            return 0, self.extents[str(term.var)] - 1
        lo, hi = self.bounds(_inner(term))
        k = term.divisor
        if term.kind == "floordiv":
            return lo // k, hi // k
        return (lo % k, hi % k) if lo // k == hi // k else (0, k - 1)

    def floordiv(self, expr: Affine, k: int) -> Affine:
        """``floor(expr / k)``, simplified: ``(8p + i) / 16 -> p / 2`` for ``0 <= i < 8``."""
        if k == 1:
            return expr
        outside, inside = _split(expr, k)
        outside = outside // k
        lo, hi = self.bounds(inside)
        if lo // k == hi // k:
            return outside + lo // k
        for g, whole, rest in _common_factors(inside, k):
            lo, hi = self.bounds(rest)
            if lo >= 0 and hi < g:
                return outside + self.floordiv(whole // g, k // g)
        if len(inside.terms) == 1 and inside.constant == 0:
            term = inside.terms[0]
            # floor(floor(e / m) / k) = floor(e / (m * k))
            if term.kind == "floordiv" and term.coeff == 1:
                return outside + self.floordiv(_inner(term), term.divisor * k)
            # (e mod m) / k = (e / k) mod (m / k) where k divides m
            if term.kind == "mod" and term.coeff == 1 and term.divisor % k == 0:
                return outside + self.mod(self.floordiv(_inner(term), k), term.divisor // k)
        return outside + inside // k

    def mod(self, expr: Affine, k: int) -> Affine:
        """``expr - k * floor(expr / k)``, simplified."""
        if k == 1:
            return affine(0)
        for term in expr.terms:
            # c * (e mod m) = c * e, modulo k, where k divides c * m
            if term.kind == "mod" and (term.coeff * term.divisor) % k == 0:
                return self.mod(expr + (_inner(term) * term.coeff) - term_expr(term), k)
        _, inside = _split(expr, k)
        lo, hi = self.bounds(inside)
        if lo // k == hi // k:
            return inside - k * (lo // k)
        for g, whole, rest in _common_factors(inside, k):
            lo, hi = self.bounds(rest)
            if lo >= 0 and hi < g:
                return self.mod(whole // g, k // g) * g + rest
        return inside % k

    def fold(self, expr: Affine) -> Affine:
        """Join ``c*k*floor(e/k) + c*(e mod k)`` into ``c*e``, also where the quotient was simplified."""
        folded = self._joined(expr)
        if any(term.kind == "mod" for term in folded.terms):
            spread = self._joined(self._spread(folded))
            if len(spread.terms) < len(folded.terms):
                return spread
        return folded

    def _joined(self, expr: Affine) -> Affine:
        for term in expr.terms:
            if term.kind != "mod":
                continue
            quotient = self.floordiv(_inner(term), term.divisor)
            joined = expr - term_expr(term) - quotient * (term.coeff * term.divisor)
            if len(joined.terms) < len(expr.terms) - 1 or (
                len(quotient.terms) == 1 and len(joined.terms) == len(expr.terms) - 2
            ):
                return self._joined(joined + _inner(term) * term.coeff)
        return expr

    def _spread(self, expr: Affine) -> Affine:
        """``floor((c*(e mod m) + r)/k)`` as ``floor((c*e + r)/k) - (c*m/k)*floor(e/m)``, k dividing c*m."""
        result = expr
        for term in expr.terms:
            if term.kind != "floordiv":
                continue
            inner, taken = _inner(term), affine(0)
            for part in _inner(term).terms:
                if part.kind == "mod" and (part.coeff * part.divisor) % term.divisor == 0:
                    inner = inner - term_expr(part) + _inner(part) * part.coeff
                    whole = self.floordiv(_inner(part), part.divisor)
                    taken = taken + whole * (part.coeff * part.divisor // term.divisor)
            if taken != 0:
                spread = self.floordiv(inner, term.divisor) - taken
                result = result - term_expr(term) + spread * term.coeff
        return result

    def sign(self, expr: Affine) -> int | None:
        """1 when the expression is always positive, -1 when never, None when it varies."""
        lo, hi = self.bounds(expr)
        return 1 if lo > 0 else -1 if hi <= 0 else None


def is_linear(expr: Affine, name: str) -> bool:
    """Whether a variable occurs in no division and no remainder."""
    return all(t.kind == "var" or name not in _inner(t).variables() for t in expr.terms)


def without(expr: Affine, *names: str) -> Affine:
    """The expression less its plain terms in some variables."""
    return expr.substitute({name: 0 for name in names}) if names else expr


def _inner(term: Term) -> Affine:
    assert isinstance(term.inner, Affine)
    return term.inner


def term_expr(term: Term) -> Affine:
    """A term, with its coefficient, as an expression."""
    if term.kind == "var":
        return var(str(term.var)) * term.coeff
    inner = _inner(term)
    return (inner // term.divisor if term.kind == "floordiv" else inner % term.divisor) * term.coeff


def _split(expr: Affine, k: int) -> tuple[Affine, Affine]:
    """(the part whose coefficients k divides, the rest with its constant in [0, k))."""
    outside = affine(expr.constant - expr.constant % k)
    inside = affine(expr.constant % k)
    for term in expr.terms:
        if term.coeff % k == 0:
            outside = outside + term_expr(term)
        else:
            inside = inside + term_expr(term)
    return outside, inside


def _common_factors(expr: Affine, k: int) -> list[tuple[int, Affine, Affine]]:
    """For each factor g > 1 of k and of some coefficients: (g, the part that g divides, the rest)."""
    factors = sorted({math.gcd(t.coeff, k) for t in expr.terms} - {1}, reverse=True)
    return [(g, *_split(expr, g)) for g in factors]
