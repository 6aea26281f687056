# SPDX-License-Identifier: Apache-2.0
"""Quasi-affine expressions as plain Python values, for analyses that walk them many times.

Every field of a node of the iGraph is a call into the native library.  A verifier reads the same few
expressions over and over, so it reads each once, into an `Expr`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any

import attrs
import numpy as np

from ..igraph.affine import Affine


@attrs.frozen(slots=False)
class Atom:
    """``coeff * (var | floor(inner / divisor) | inner mod divisor)``; ``kind`` as in `igraph.affine.Term`."""

    coeff: int
    kind: str
    var: str
    inner: Expr | None
    divisor: int


@attrs.frozen(slots=False)
class Expr:
    """``constant + sum(atoms)``."""

    constant: int
    atoms: tuple[Atom, ...]

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables."""
        out: set[str] = set()
        for a in self.atoms:
            out |= {a.var} if a.inner is None else a.inner.variables
        return frozenset(out)

    def interval(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """Bounds (both reached or not) for variables in ``[0, extent)``."""
        low = high = self.constant
        for a in self.atoms:
            first, last = _atom_interval(a, extents)
            low += a.coeff * (first if a.coeff > 0 else last)
            high += a.coeff * (last if a.coeff > 0 else first)
        return low, high

    def magnitude(self, extents: Mapping[str, int]) -> int:
        """A bound of every number met while the expression is evaluated, partial sums and quotients too."""
        total, largest = abs(self.constant), 0
        for a in self.atoms:
            first, last = _atom_interval(a, extents)
            total += abs(a.coeff) * max(abs(first), abs(last))
            if a.inner is not None:
                largest = max(largest, a.divisor, a.inner.magnitude(extents))
        return max(total, largest)

    def values(self, env: Mapping[str, Any]) -> Any:
        """The value; ``env`` maps variables to ints or int64 arrays, which broadcast."""
        total: Any = np.int64(self.constant)
        for a in self.atoms:
            if a.inner is None:
                total = total + a.coeff * env[a.var]
            else:
                inner = a.inner.values(env)
                total = total + a.coeff * (inner // a.divisor if a.kind == "floordiv" else inner % a.divisor)
        return total

    def isl_text(self, names: Mapping[str, str]) -> str:
        """The expression in isl's notation, with the variables renamed."""
        parts = [str(self.constant)]
        for a in self.atoms:
            if a.inner is None:
                parts.append(f"{a.coeff}*{names[a.var]}")
            elif a.kind == "floordiv":
                parts.append(f"{a.coeff}*floor(({a.inner.isl_text(names)})/{a.divisor})")
            else:
                parts.append(f"{a.coeff}*(({a.inner.isl_text(names)}) mod {a.divisor})")
        return " + ".join(parts)


def expr(value: Affine) -> Expr:
    """The expression as a plain value; each text is read once per process."""
    return _read(str(value), _Same(value))


class _Same:
    """An argument that takes no part in the cache's key: the text beside it says all."""

    def __init__(self, value: Affine) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=65536)
def _read(text: str, holder: _Same) -> Expr:
    return _convert(holder.value)


def _convert(value: Affine) -> Expr:
    atoms = []
    for term in value.terms:
        inner = None if term.kind == "var" else _convert(term.inner)  # type: ignore[arg-type]
        atoms.append(Atom(int(term.coeff), str(term.kind), str(term.var), inner, int(term.divisor)))
    return Expr(int(value.constant), tuple(atoms))


def _atom_interval(a: Atom, extents: Mapping[str, int]) -> tuple[int, int]:
    if a.inner is None:
        return 0, extents[a.var] - 1
    low, high = a.inner.interval(extents)
    k = a.divisor
    if a.kind == "floordiv":
        return low // k, high // k
    if low // k == high // k:
        return low % k, high % k
    # What is reached is congruent to the constant modulo the common divisor of all coefficients.
    step = math.gcd(k, *(b.coeff for b in a.inner.atoms))
    residue = a.inner.constant % step
    return residue, k - step + residue
