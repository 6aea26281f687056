# SPDX-License-Identifier: Apache-2.0
"""Addresses of pointers with several open dimensions as coordinates, one expression for each dimension.

The pointer ``(b, 12, s, 64)`` of the sizes ``b`` and ``s`` has the address ``768*s*i + 64*s*h + 64*j + d``,
with products of sizes in it.  Dimensions whose strides differ by a number only count as one: the pointer is
``(12*b, 64*s)``, and the address has the coordinates ``(12*i + h, 64*j + d)``, which are affine.

Where every coordinate lies within its dimension, an element has just one address and an address just one
element: what is asked of addresses can be asked of coordinates.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

from .affine import Affine, Term, affine, var
from .space import Space


def joined_dims(dims: Sequence[Affine]) -> tuple[Affine, ...]:
    """The dimensions of a pointer, with those joined whose strides are numbers times each other.

    Returns
    -------
    tuple of Affine
        One of them: the pointer's strides are numbers.
    """
    if not dims:
        return (affine(1),)
    out: list[Affine] = []
    inner = affine(1)
    for dim in reversed(dims):
        if inner.is_constant:
            inner = dim * inner
        else:
            out.append(inner)
            inner = dim
    out.append(inner)
    if len(out) > 1 and out[-1] == 1:
        out.pop()
    return tuple(reversed(out))


def strides(dims: Sequence[Affine]) -> tuple[Affine, ...]:
    """The row-major strides of dimensions."""
    out = [affine(1)]
    for dim in reversed(dims[1:]):
        out.append(out[-1] * dim)
    return tuple(reversed(out))


def address(coordinates: Sequence[Affine], dims: Sequence[Affine]) -> Affine:
    """The address of an element."""
    parts = (c * stride for c, stride in zip(coordinates, strides(dims), strict=True))
    return functools.reduce(lambda a, b: a + b, parts)


def coordinates_of(offset: Affine, dims: Sequence[Affine], space: Space) -> tuple[Affine, ...] | None:
    """The coordinates of an address, affine each; None where it does not part so.

    A part goes to the outermost dimension whose stride divides it.

    Parameters
    ----------
    dims : sequence of Affine
        As `joined_dims` has them.
    space : Space
        What is known of the variables, by which coordinates are simplified.
    """
    left = offset
    out: list[Affine] = []
    for stride in strides(dims)[:-1]:
        if len(stride.terms) != 1 or stride.constant:
            return None  # a dimension like n + 1
        factor, names, _ = _factors(stride.terms[0])
        here, rest = affine(0), affine(left.constant)
        for term in left.terms:
            quotient = _divided(term, factor, names)
            if quotient is None:
                rest = rest + term.expr
            else:
                here = here + quotient
        if not here.is_affine:
            return None
        out.append(space.fold(here))
        left = rest
    if not left.is_affine:
        return None
    return (*out, space.fold(left))


def step_along(stride: Affine, dims: Sequence[Affine]) -> tuple[int, int] | None:
    """(dimension, step) of a stride: an index of which dimension grows by how much; None where none does.

    Parameters
    ----------
    stride : Affine
        Of a side of a slice.
    dims : sequence of Affine
        As `joined_dims` has them.
    """
    if stride.is_constant:
        return len(dims) - 1, int(stride.constant)
    if len(stride.terms) != 1 or stride.constant:
        return None
    for dim, whole in enumerate(strides(dims)[:-1]):
        if len(whole.terms) != 1 or whole.constant:
            return None
        factor, names, _ = _factors(whole.terms[0])
        quotient = _divided(stride.terms[0], factor, names)
        if quotient is not None and quotient.is_constant:
            return dim, int(quotient.constant)
    return None


def stride_of(address: Affine, name: str) -> Affine | None:
    """By how much an address grows with a variable: a number, or a product of others where it is multiplied.

    None where the variable occurs in a quotient or a remainder, or more than once in a product.
    """
    total = affine(0)
    for term in address.terms:
        if name not in term.expr.variables():
            continue
        quotient = _divided(term, 1, [name])
        if quotient is None or name in quotient.variables():
            return None
        total = total + quotient
    return total


def _factors(term: Term) -> tuple[int, list[str], Affine | None]:
    """A term as (coefficient, variables, quotient or remainder)."""
    names: list[str] = []
    inner = term
    while inner.kind == "product":
        names.append(str(inner.var))
        inner = inner.argument.terms[0]
    if inner.kind == "var":
        return int(term.coeff), [*names, str(inner.var)], None
    return int(term.coeff), names, inner.atom


def _divided(term: Term, factor: int, names: Sequence[str]) -> Affine | None:
    """A term divided by ``factor`` times some sizes; None where they do not divide it."""
    coeff, own, atom = _factors(term)
    left = Counter(own)
    left.subtract(names)
    if coeff % factor or min(left.values(), default=0) < 0:
        return None
    parts = [var(name) for name in left.elements()]
    product = functools.reduce(lambda a, b: a * b, parts, affine(1) if atom is None else atom)
    return product * (coeff // factor)
