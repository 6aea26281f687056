# SPDX-License-Identifier: Apache-2.0
"""Regions that look the same in every group: what is known of group 0 is known of all.

Kernels number the units within a group by ``pid % num_units`` and the groups by ``pid // num_units``.  When
pid goes on by num_units, such expressions go on by a constant, and where that is the same on both sides of a
question about two units of one group, the answer for one group is the answer for all.
"""

from __future__ import annotations

import attrs

from .region import PID, Region


def in_first_group(regions: list[Region], num_units: int) -> list[Region] | None:
    """The regions for the units of group 0 alone; None where other groups may differ in more than a shift
    that is the same for all of them."""
    shifts = set()
    for region in regions:
        shifts.add(region.offset.growth(PID, num_units))
        if any(b.growth(PID, num_units) != 0 for b in region.bounds) or num_units % region.every:
            return None
    if len(shifts) > 1 or None in shifts:
        return None
    return [attrs.evolve(r, extents={**r.extents, PID: num_units}, known=None) for r in regions]
