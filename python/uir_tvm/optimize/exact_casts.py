# SPDX-License-Identifier: Apache-2.0
"""Which dtypes hold every value of which others."""

from __future__ import annotations

import numpy as np

from ..igraph.dtypes import dtype_of
from .simplify_site import rounded


def has_infinity(dtype: str) -> bool:
    """Whether a dtype has infinities."""
    return dtype_of(dtype).kind == "float" and bool(np.isinf(float(rounded(np.inf, dtype))))


def holds(wide: str, narrow: str) -> bool:
    """Whether a dtype holds every value of another, so that a cast to it and back changes nothing."""
    a, b = dtype_of(narrow), dtype_of(wide)
    if a.name == b.name or a.kind == "bool":
        return True
    if b.kind == "bool":
        return False
    if a.kind == "float":
        if b.kind != "float":
            return False
        return (
            _digits(b.name) >= _digits(a.name)
            and _reach(b.name)[0] <= _reach(a.name)[0]
            and (_reach(b.name)[1] >= _reach(a.name)[1])
            and (has_infinity(b.name) or not has_infinity(a.name))
        )
    low, high = np.iinfo(a.numpy).min, np.iinfo(a.numpy).max
    if b.kind == "float":
        return max(abs(int(low)), int(high)) <= 2 ** _digits(b.name) and high <= _reach(b.name)[1]
    return bool(np.iinfo(b.numpy).min <= low and np.iinfo(b.numpy).max >= high)


#: dtype -> (digits of the significand, least denormal as a power of two, greatest finite value)
_FORMATS = {
    "fp64": (53, -1074, float(np.finfo(np.float64).max)),
    "fp32": (24, -149, float(np.finfo(np.float32).max)),
    "fp16": (11, -24, 65504.0),
    "bf16": (8, -133, 3.3895313892515355e38),
    "fp8e4m3": (4, -9, 448.0),
    "fp8e5m2": (3, -16, 57344.0),
}


def _digits(dtype: str) -> int:
    return _FORMATS[dtype][0]


def _reach(dtype: str) -> tuple[int, float]:
    return _FORMATS[dtype][1:]
