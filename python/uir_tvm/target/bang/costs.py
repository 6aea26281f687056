# SPDX-License-Identifier: Apache-2.0
"""What instructions of an MLU core cost, as data for the host model's time.

A vector instruction takes `START` cycles, then for each 128 bytes of its result (of its operand where
that is longer) as many cycles as `PASSES` says.  That 128 bytes take a cycle, shorter ones as long, that
instructions have a start of their own, and that a dependent one waits further, the BANG C operator guide says
(Cambricon's mlu-ops, section 5.3.4); it has no figures for starts and for single functions.  Those here are
assumptions on the careful side: a function of a table is taken to be four times an addition.

Transfers: a core moves up to `PipeCost.bytes_per_cycle` on each of its pipes, a cluster what the hardware
model's ``cluster_bytes_per_second`` says, and all together ``dram_bytes_per_second``.  A core alone is taken
to reach half of its cluster's share.  Accesses of global memory are of 64 bytes; a shorter write reads first
(section 5.3.3 of the guide).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

#: Cycles of a launch that no pipe accounts for.
KERNEL_CYCLES = 1000
#: Cycles of a scalar access to NRAM, and to global memory (0.5 GB/s of 4-byte accesses were measured on one).
SCALAR_CYCLES, SCALAR_DRAM_CYCLES = 10, 8
#: Cycles of a wait for a core's pipes, and of a meeting of the cores of a cluster.
SYNC_CYCLES, CLUSTER_SYNC_CYCLES = 10, 100
#: Cycles before a vector instruction's first result.
START = 20
#: Bytes of one access of global memory.
ACCESS_BYTES = 64


@attrs.frozen
class PipeCost:
    """What one pipe of a core costs beside its instructions' own time.

    Attributes
    ----------
    bytes_per_cycle : float
        Most that it moves; 0: it moves nothing.
    start : float
        Cycles of each instruction, whatever its size.
    head : float
        Cycles that the first instruction of a kernel waits.
    row : float
        Cycles of each further segment of a strided transfer.
    """

    bytes_per_cycle: float
    start: float
    head: float
    row: float


PIPES: Mapping[str, PipeCost] = {
    "IO": PipeCost(48, 100, 500, 2),
    "MOVE": PipeCost(64, 30, 0, 1),
    "COMPUTE": PipeCost(0, START, 0, 0),
    "S": PipeCost(0, 0, 0, 0),
}

#: Cycles that 128 bytes take, by what a function does.
TABLE, COPYING, FOLDING, SELECTING = 4.0, 1.0, 1.0, 2.0
#: Function (of a family: without `__bang_` and without its form) -> cycles of 128 bytes; others take one.
PASSES: Mapping[str, float] = {
    **dict.fromkeys(
        ("sqrt", "rsqrt", "recip", "pow2", "log", "log2", "sin", "cos", "tanh", "div"),
        TABLE,
    ),
    **dict.fromkeys(
        (
            "active_exp",
            "active_exphp",
            "active_exp_less_0",
            "active_log",
            "active_loghp",
            "active_sqrt",
            "active_rsqrt",
            "active_recip",
            "active_reciphp",
            "active_tanh",
            "active_sigmoid",
            "active_gelu",
            "active_gelup",
            "active_sin",
            "active_cos",
        ),
        TABLE,
    ),
    **dict.fromkeys(("transpose", "reshape_filter", "tiling_2d_b32"), SELECTING),
    **dict.fromkeys(("sumpool", "maxpool", "minpool", "reduce_sum", "sum", "argmax"), FOLDING),
    **dict.fromkeys(("collect", "filter", "maskmove"), SELECTING),
    "fusion": 1.0,
}
#: Cycles of 128 bytes of a function without a row.
DEFAULT = 1.0


def as_data() -> dict[str, Any]:
    """All of it as plain data: what the host model of a core is launched with.

    Returns
    -------
    dict
        ``kernel_cycles``, ``scalar_cycles``, ``scalar_dram_cycles``, ``sync_cycles``,
        ``cluster_sync_cycles``, ``start`` (cycles), ``access_bytes``; ``pipes``: name -> `PipeCost`'s fields;
        ``passes``: function -> cycles of 128 bytes; ``default``: those of other functions.
    """
    return {
        "kernel_cycles": KERNEL_CYCLES,
        "scalar_cycles": SCALAR_CYCLES,
        "scalar_dram_cycles": SCALAR_DRAM_CYCLES,
        "sync_cycles": SYNC_CYCLES,
        "cluster_sync_cycles": CLUSTER_SYNC_CYCLES,
        "start": START,
        "access_bytes": ACCESS_BYTES,
        "pipes": {name: attrs.asdict(pipe) for name, pipe in PIPES.items()},
        "passes": dict(PASSES),
        "default": DEFAULT,
    }
