# SPDX-License-Identifier: Apache-2.0
"""The annotations by which a scheduled PrimFunc tells extraction its structure."""

from __future__ import annotations

#: On the loop over units; value "G,U".
PARALLEL = "uir.parallel"
#: On a serial loop of the loop tree.
LOOP = "uir.loop"
#: On the loop over the units of a group that share one tile; value = group size.
GROUP = "uir.group"


def parallel_value(groups: int, units: int) -> str:
    """The value of `PARALLEL`."""
    return f"{groups},{units}"


def parse_parallel(value: object) -> tuple[int, int]:
    """(groups, units) of a `PARALLEL` value."""
    groups, units = str(value).split(",")
    return int(groups), int(units)
