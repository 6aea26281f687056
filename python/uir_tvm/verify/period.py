# SPDX-License-Identifier: Apache-2.0
"""Regions that look the same in every group: what is known of group 0 is known of all.

Kernels number the units within a group by ``pid % num_units`` and the groups by ``pid // num_units``.  When
pid goes on by num_units, such expressions go on by a constant, and where that is the same on both sides of a
question about two units of one group, the answer for one group is the answer for all.
"""

from __future__ import annotations

import attrs

from .expr import Expr
from .region import PID, Region


def growth(value: Expr, step: int) -> int | None:
    """By how much an expression grows when pid does by ``step``; None: not by the same everywhere."""
    total = 0
    for a in value.atoms:
        if a.inner is None:
            total += a.coeff * step if a.var == PID else 0
            continue
        inner = growth(a.inner, step)
        if inner is None or inner % a.divisor:
            return None
        total += a.coeff * (inner // a.divisor) if a.kind == "floordiv" else 0
    return total


def in_first_group(regions: list[Region], num_units: int) -> list[Region] | None:
    """The regions for the units of group 0 alone; None where other groups may differ in more than a shift
    that is the same for all of them."""
    shifts = set()
    for region in regions:
        shifts.add(growth(region.base, num_units))
        bounds = (*region.row_bounds[0], *region.row_bounds[1], *region.col_bounds[0], *region.col_bounds[1])
        if any(growth(b, num_units) != 0 for b in bounds) or num_units % region.every:
            return None
    if len(shifts) > 1 or None in shifts:
        return None
    return [attrs.evolve(r, extents={**r.extents, PID: num_units}) for r in regions]
