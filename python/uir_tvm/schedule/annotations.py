# SPDX-License-Identifier: Apache-2.0
"""The annotations by which a scheduled PrimFunc tells extraction its structure."""

from __future__ import annotations

#: On the loop over units; value "G,U", or the number U alone: as many groups as the loop has units for.
PARALLEL = "uir.parallel"
#: On the loop over units: bytes that an instruction of a unit takes, where it is not the hardware's own
#: number; the iGraph has them as its attribute ``vector_bytes``.  On a CPU: of the vectors that it computes
#: with, twice as many are two registers at a time.  On a GPU: of the widest access of a warp's lanes to dram.
VECTOR, VECTOR_ATTR = "uir.vector", "vector_bytes"

#: On the loop over units, where sizes decide how many there are: up to so much work one thread does all, for
#: waking others costs more; and the graph's attribute that says so.  In parts of what a unit does at the
#: greatest sizes.
LITTLE_WORK, LITTLE_WORK_ATTR = "uir.little_work", "little_work"
#: So many of these are a unit's work.
WORK_PARTS = 1024
#: On a serial loop of the loop tree.
LOOP = "uir.loop"
#: Value k, the size of a set of units with consecutive pids.  On a loop inside the parallel loop, or on a
#: block whose first stored dimension is bound to one: unit pid runs iteration pid % k of it.  On the
#: parallel loop: its iteration p is the work of the units k*p .. k*p + k - 1.
GROUP = "uir.group"
#: On a block that copies what the first unit of a set holds to all of them; value = size of the set.
BROADCAST = "uir.group_broadcast"
#: On a block whose tile loops stay as they are: not merged to one long row, and a single one is rows.
ROWS = "uir.rows"
#: On a loop whose loads run ahead; value = iterations in flight.
PIPELINE = "uir.pipeline"


def parallel_value(groups: int, units: int) -> str:
    """The value of `PARALLEL`."""
    return f"{groups},{units}"


def parse_parallel(value: object, total: int) -> tuple[int, int]:
    """(groups, units) of a `PARALLEL` value on a loop over ``total`` units."""
    groups, _, units = str(value).rpartition(",")
    return int(groups) if groups else total // int(units), int(units)


#: On a block: its update is a matrix product over the tile, which becomes one contract iOp.
CONTRACT = "uir.contract"
