# SPDX-License-Identifier: Apache-2.0
"""What instructions of a vector core of the 910B (dav-2201) cost, as data for the host model's time.

A vector function on n elements takes ``k * n + b`` cycles of the pipe V, and what follows it on the same pipe
without waiting overlaps its start (`PipeCost.head` is paid once a kernel).  Figures of k and b: the cost
model of CANN's graph-autofusion for this chip, which its authors fitted to measurements (``perf_param_v1``,
https://gitcode.com/cann/graph-autofusion), rounded to three digits.  A row named ``like`` another has no
figure of its own there.

Transfers: a core moves up to `PipeCost.bytes_per_cycle` on each of its pipes, and all cores together what the
memory does (``dram_bytes_per_second`` of the hardware model; `L2` for what the second-level cache holds).
The cost model's own formula for loads (27 + bytes / (9.91 + 15.9 / blocks) cycles) and for stores
(12 + bytes / (9.96 + 3.79 / blocks)) says the same for 48 cores that load and store at once: 10 bytes a cycle
each way, 1.7 TB/s together; a core alone loads 26 bytes a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

#: Cycles of a launch that no pipe accounts for.
KERNEL_CYCLES = 300


@attrs.frozen
class PipeCost:
    """What one pipe of a core costs beside its instructions' own time.

    Attributes
    ----------
    bytes_per_cycle : float
        Most that it moves between global memory and the core; 0: it moves nothing there.
    start : float
        Cycles of each transfer, whatever its size.
    head, head_per_block : float
        Cycles that the first instruction of a kernel waits, and as many more for every block of the launch.
    row : float
        Cycles of each further row of a transfer of many rows (a row of less than a line of 512 bytes takes
        the time of its blocks of 32 bytes).
    """

    bytes_per_cycle: float
    start: float
    head: float
    head_per_block: float
    row: float


#: Pipes of cube cores, MTE1, M and FIX: rates as platform files of the toolkit have them (L1 to L0B, from a
#: core to memory); their starts are assumed to be those of loads, of vector functions, of stores.
#: Loads by head of transfers from 25 KB on (below: 882 + 15.9 a block), which double buffering keeps to.
PIPES: Mapping[str, PipeCost] = {
    "MTE2": PipeCost(32, 27, 1575, 32.7, 2),
    "MTE3": PipeCost(32, 12, 497, 0, 2),
    "V": PipeCost(0, 0, 37, 0, 0),
    "S": PipeCost(0, 0, 0, 0, 0),
    "MTE1": PipeCost(256, 27, 0, 0, 0),
    "M": PipeCost(0, 20, 0, 0, 0),
    "FIX": PipeCost(64, 12, 0, 0, 2),
}
#: Bytes a cycle between the second-level cache and a core (platform file of the 910B1): reading, writing.
L2: Mapping[str, int] = {"read": 110, "write": 86}
#: Cycles of a scalar access to the UB or global memory (GetValue, SetValue), and of a flag or a barrier.
SCALAR_CYCLES, SYNC_CYCLES = 10, 10


@attrs.frozen
class Cost:
    """Cycles of a function on n elements: ``k * n + b``, for elements of four and of two bytes."""

    k4: float
    b4: float
    k2: float
    b2: float


_SIMPLE = Cost(0.0147, 20, 0.0077, 20)
_MIN_MAX = Cost(0.0215, 20, 0.0111, 20)
_SCALAR = Cost(0.0141, 20, 0.0071, 20)
_COMPARE_SCALAR = Cost(0.0161, 22, 0.0084, 22)
_LOGIC = Cost(0.0132, 12, 0.0132, 12)

#: Function -> cost.
VECTOR: Mapping[str, Cost] = {
    "Abs": _SIMPLE,
    "Add": Cost(0.0206, 23, 0.0103, 22),
    "Adds": Cost(0.0141, 22, 0.0071, 22),
    "And": Cost(0.0112, 18, 0.0107, 17),
    "BlockReduceMax": Cost(0.0198, 17, 0.0547, 18),
    "BlockReduceMin": Cost(0.0198, 17, 0.0547, 18),
    "BlockReduceSum": Cost(0.0198, 17, 0.0547, 18),  # like BlockReduceMax
    "Brcb": Cost(0.0146, 13, 0.0074, 13),
    "Cast": Cost(0.0147, 20, 0.0087, 20),
    "Compare": Cost(0.0310, 21, 0.0155, 21),
    "CompareScalar": _COMPARE_SCALAR,
    "Copy": Cost(0.0157, 13, 0.0078, 13),
    "DataCopy": Cost(0.0152, 12, 0.0076, 12),  # from UB to UB
    "Div": Cost(0.0454, 29, 0.0460, 29),
    "Duplicate": Cost(0.0156, 17, 0.0078, 17),
    "Erf": Cost(0.604, 458, 0.700, 478),
    "Exp": Cost(0.0307, 28, 0.0311, 28),
    "Gather": Cost(0.188, 15, 0.187, 17),
    "GatherMask": Cost(0.0313, 14, 0.0156, 14),
    "LeakyRelu": _SIMPLE,  # like Relu
    "Ln": Cost(0.0307, 28, 0.0311, 28),  # like Exp
    "Max": _MIN_MAX,
    "Maxs": _SCALAR,
    "Min": _MIN_MAX,
    "Mins": _SCALAR,
    "Mul": Cost(0.0206, 23, 0.0110, 23),
    "Muls": Cost(0.0142, 23, 0.0071, 23),
    "Not": _LOGIC,  # like Or
    "Or": _LOGIC,
    "PairReduceSum": Cost(0.109, 37, 0.0547, 37),
    "Power": Cost(0.620, 730, 0.665, 2517),
    "Reciprocal": Cost(0.0146, 21, 0.0078, 21),
    "Relu": Cost(0.0154, 20, 0.0077, 20),
    "Rsqrt": Cost(0.0143, 21, 0.0071, 21),
    "Select": Cost(0.0229, 44, 0.0118, 46),
    "ShiftLeft": _SIMPLE,  # like Abs
    "ShiftRight": _SIMPLE,  # like Abs
    "Sigmoid": Cost(0.126, 116, 0.101, 116),
    "Sign": Cost(0.170, 119, 0.0855, 119),
    "Sin": Cost(0.604, 458, 0.700, 478),  # like Erf: an argument reduction and a polynomial
    "Cos": Cost(0.604, 458, 0.700, 478),  # like Sin
    "Sqrt": Cost(0.0313, 29, 0.0312, 29),
    "Sub": Cost(0.0213, 22, 0.0107, 22),
    "Tanh": Cost(0.157, 154, 0.198, 182),
    "TransDataTo5HD": Cost(0.0152, 12, 0.0076, 12),  # like DataCopy: every block once
    "Transpose": Cost(0.0152, 12, 0.0076, 12),  # like DataCopy
    "WholeReduceMax": Cost(0.109, 20, 0.0547, 21),
    "WholeReduceMin": Cost(0.109, 20, 0.0547, 21),
    "WholeReduceSum": Cost(0.109, 32, 0.0547, 35),
}
#: Of a function that has no row: that of an addition.
DEFAULT = "Add"
#: Casts whose cost is not that of `VECTOR` (float<->half, and what is alike), by source and target.
CASTS: Mapping[tuple[str, str], tuple[float, float]] = {
    ("float", "half"): (0.0087, 20),
    ("float", "bfloat16_t"): (0.0087, 20),
    ("half", "uint8_t"): (0.0083, 20),
    ("half", "int8_t"): (0.0083, 20),
    ("uint8_t", "half"): (0.0102, 47),
    ("int8_t", "half"): (0.0102, 47),
    ("int64_t", "int32_t"): (0.0332, 19),
    ("int32_t", "int64_t"): (0.0332, 19),
}


def as_data() -> dict[str, Any]:
    """All of it as plain data: what the host model of a vector core is launched with.

    Returns
    -------
    dict
        ``kernel_cycles``, ``scalar_cycles``, ``sync_cycles`` (numbers); ``pipes``: name -> fields of a
        `PipeCost`; ``l2``: ``read`` and ``write`` in bytes a cycle; ``vector``: function -> {"4": [k, b],
        "2": [k, b]} by bytes of an element; ``casts``: "FROM>TO" -> [k, b]; ``default``: the row of other
        functions.
    """
    return {
        "kernel_cycles": KERNEL_CYCLES,
        "scalar_cycles": SCALAR_CYCLES,
        "sync_cycles": SYNC_CYCLES,
        "pipes": {name: attrs.asdict(pipe) for name, pipe in PIPES.items()},
        "l2": dict(L2),
        "vector": {name: {"4": [row.k4, row.b4], "2": [row.k2, row.b2]} for name, row in VECTOR.items()},
        "casts": {f"{source}>{target}": list(cost) for (source, target), cost in CASTS.items()},
        "default": DEFAULT,
    }
