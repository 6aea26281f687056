# SPDX-License-Identifier: Apache-2.0
"""Regions that are mixed-radix tilings, for which coverage and disjointness are read off.

Most kernels write their output as ``sum(coefficient * digit)`` with independent digits (pid, loops,
rows, columns; the quotients and remainders of pid by constants are digits too).  Sorted by coefficient,
such a sum reaches every address of a range exactly once when each coefficient is the product of the
extents below it.  A tail, ``rows :n - 32*pid`` with 32 rows and an offset that goes on by rows as
``32*pid`` does, is the digit ``32*pid + i`` in [0, n).

A proof found here holds; finding none says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ..igraph.affine import Affine, Term
from .region import PID, Axis, Region

# A digit of the domain: (variable, lower radix).  ("", 0) is the row, ("", 1) the column.
Key = tuple[str, int]
ROW: Key = ("", 0)
COL: Key = ("", 1)


@attrs.frozen
class Tiling:
    """Addresses ``base + sum(coefficient * digit)``: (coefficient, extent) pairs, ascending, all above 1.

    No address is reached by two values of the digits.
    """

    base: int
    digits: tuple[tuple[int, int], ...]


class _Digits:
    """The digits of the variables of one region, and linear forms over them."""

    def __init__(self, region: Region) -> None:
        self.extent: dict[Key, int] = {ROW: region.rows.extent, COL: region.cols.extent}
        self.of: dict[str, list[int]] = {}  # variable -> its radices 1 | k1 | k2 ..., ascending
        cuts: dict[str, set[int]] = {v: {1} for v in region.used}
        for e in (region.offset, *region.rows.upper, *region.cols.upper):
            for term in e.terms:
                _collect(term, cuts)
        for v, found in cuts.items():
            radices = sorted(found)
            bounds = [*radices, region.extents[v]]
            while len(bounds) > 1 and bounds[-2] >= bounds[-1]:
                bounds.pop(-2)  # a radix at or above the extent cuts nothing
            if any(above % below for below, above in zip(bounds, bounds[1:], strict=False)):
                raise _NoTiling
            self.of[v] = radices
            for k, radix in enumerate(radices):
                above = min(radices[k + 1] if k + 1 < len(radices) else region.extents[v], region.extents[v])
                self.extent[(v, radix)] = max(above // radix, 1)

    def linear(self, e: Affine) -> tuple[int, dict[Key, int]]:
        """The expression as (constant, coefficient of each digit)."""
        out: dict[Key, int] = {}
        for a in e.terms:
            v, low, high = _window(a)
            for radix in self.of[v]:
                if low <= radix and (high is None or radix < high):
                    out[(v, radix)] = out.get((v, radix), 0) + int(a.coeff) * (radix // low)
        return int(e.constant), {k: c for k, c in out.items() if c}


class _NoTiling(Exception):
    """The region is not of the form that this file knows."""


def _window(a: Term) -> tuple[str, int, int | None]:
    """(v, low, high) of ``v``, ``v // low``, ``v % high`` or ``(v // low) % (high / low)``."""
    if a.inner is None:
        return str(a.var), 1, None
    inner, divisor = a.argument, int(a.divisor)
    if inner.constant or len(inner.terms) != 1 or inner.terms[0].coeff != 1:
        raise _NoTiling
    v, low, high = _window(inner.terms[0])
    if a.kind == "mod":
        new = low * divisor
        return v, low, new if high is None or high % new == 0 else _refuse()
    return v, low * divisor, high if high is None or high % (low * divisor) == 0 else _refuse()


def _refuse() -> int:
    raise _NoTiling


def _collect(term: Term, cuts: dict[str, set[int]]) -> None:
    v, low, high = _window(term)
    cuts[v] |= {low} | ({high} if high is not None else set())


def tiling_of(region: Region) -> Tiling | None:
    """The region as a tiling by which each element belongs to one unit; None when none is found."""
    if region.every > 1 or region.rows.lower or region.cols.lower:
        return None
    try:
        return _tiling(region)
    except _NoTiling:
        return None


def _tiling(region: Region) -> Tiling:
    digits = _Digits(region)
    base, form = digits.linear(region.offset)
    taken: set[Key] = set()  # digits that a tail has used up
    merged: list[tuple[int, int]] = []
    for axis, key, bounds in (
        (region.rows, ROW, region.rows.upper),
        (region.cols, COL, region.cols.upper),
    ):
        if not bounds:
            merged.append((axis.stride, axis.extent))
        else:
            used, extent = _tail(digits, form, axis, key, bounds, taken)
            taken |= used
            merged.append((axis.stride, extent))
    if PID in region.extents and region.extents[PID] > 1 and PID not in region.used:
        raise _NoTiling  # every unit writes the same
    for key, extent in digits.extent.items():
        if key in taken or key in (ROW, COL):
            continue
        coefficient = form.get(key, 0)
        if coefficient == 0 and extent > 1 and key[0] == PID:
            raise _NoTiling
        if coefficient:
            merged.append((coefficient, extent))
    return _sorted(base, merged)


def _tail(
    digits: _Digits, form: dict[Key, int], axis: Axis, key: Key, bounds: Sequence[Affine], taken: set[Key]
) -> tuple[set[Key], int]:
    """The digits that one axis continues up to its bound, and how many positions there are in all."""
    if len(bounds) != 1:
        raise _NoTiling
    total, negative = digits.linear(bounds[0])
    reach = axis.extent
    steps = {d: c for d, c in negative.items() if digits.extent[d] > 1}
    for digit, coefficient in sorted(steps.items(), key=lambda kv: -kv[1]):
        # position = sum(-coefficient * digit) + i, dense when each step continues where the last ended
        if -coefficient != reach or digit in taken or form.get(digit, 0) != -coefficient * axis.stride:
            raise _NoTiling
        reach *= digits.extent[digit]
    if total <= 0:
        raise _NoTiling
    return set(steps), min(total, reach)


def _sorted(base: int, merged: Sequence[tuple[int, int]]) -> Tiling:
    positive: list[tuple[int, int]] = []
    for coefficient, extent in merged:
        if extent > 1:
            if coefficient == 0:
                raise _NoTiling
            base += min(coefficient, 0) * (extent - 1)
            positive.append((abs(coefficient), extent))
    out: list[tuple[int, int]] = []
    span = 0  # the largest sum of the digits so far
    for coefficient, extent in sorted(positive):
        if coefficient <= span:
            raise _NoTiling
        span += coefficient * (extent - 1)
        if out and coefficient == out[-1][0] * out[-1][1]:
            out[-1] = (out[-1][0], out[-1][1] * extent)
        else:
            out.append((coefficient, extent))
    return Tiling(base, tuple(out))


def proves(tilings: Sequence[Tiling], size: int, complete: bool) -> bool:
    """Whether no address is in two tilings and, if ``complete``, every address of [0, size) is in one."""
    if all(not t.digits or (len(t.digits) == 1 and t.digits[0][0] == 1) for t in tilings):
        return _intervals(tilings, size, complete)
    top = {t.digits[-1] if t.digits else None for t in tilings}
    if len(top) != 1 or None in top:
        return False
    ((step, extent),) = (d for d in top if d is not None)
    if step * extent > size or (complete and step * extent != size):
        return False
    return proves([Tiling(t.base, t.digits[:-1]) for t in tilings], step, complete)


def _intervals(tilings: Sequence[Tiling], size: int, complete: bool) -> bool:
    at = 0
    for begin, extent in sorted((t.base, t.digits[0][1] if t.digits else 1) for t in tilings):
        if begin < at or (complete and begin != at):
            return False
        at = begin + extent
    return at == size if complete else at <= size
