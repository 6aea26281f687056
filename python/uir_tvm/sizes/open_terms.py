# SPDX-License-Identifier: Apache-2.0
"""Polynomials in whole numbers as terms: how they read, and what of them divides."""

from __future__ import annotations

from .open_bounds import Monomial

#: Monomials with their factors, none of them 0, in order.
Terms = tuple[tuple[Monomial, int], ...]


def terms_text(terms: Terms) -> str:
    """A polynomial as Python reads it."""
    if not terms:
        return "0"
    said: list[str] = []
    for monomial, factor in sorted(terms, key=lambda term: (-len(term[0]), term)):
        parts = list(monomial) if abs(factor) == 1 and monomial else [str(abs(factor)), *monomial]
        sign = ("- " if said else "-") if factor < 0 else ("+ " if said else "")
        said.append(sign + "*".join(parts))
    return " ".join(said)


def over_term(terms: Terms, divisor: tuple[Monomial, int]) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """What of a polynomial one term divides, divided, and the rest."""
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    names, number = divisor
    for monomial, factor in terms:
        left: list[str] | None = list(monomial)
        for name in names:
            if left is None or name not in left:
                left = None
                break
            left.remove(name)
        if left is None or factor % number:
            rest[monomial] = factor
        else:
            quotient[tuple(left)] = factor // number
    return quotient, rest


def long_division(terms: Terms, divisor: Terms) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """Quotient and rest of polynomials; the rest is not empty where none divides the other."""
    rest, quotient = dict(terms), dict[Monomial, int]()
    first = min(divisor, key=lambda term: (-len(term[0]), term[0]))
    while rest:
        leading = min(rest.items(), key=lambda term: (-len(term[0]), term[0]))
        over, _ = over_term((leading,), first)
        if not over:
            return quotient, rest
        ((monomial, factor),) = over.items()
        quotient[monomial] = quotient.get(monomial, 0) + factor
        for name, number in divisor:
            product = tuple(sorted(monomial + name))
            rest[product] = rest.get(product, 0) - factor * number
            if not rest[product]:
                del rest[product]
    return quotient, rest
