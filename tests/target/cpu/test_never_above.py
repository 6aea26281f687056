# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of an iGraph's text is one iOp)
"""Exponentials of what had its maximum taken off are found, others are not, and both equal the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.target.cpu.never_above import AT_MOST_ZERO, marked

from .support import check, parsed

POINTERS = """x = iPointer(dram, fp32, 1024, in)
y = iPointer(dram, fp32, 1024, in)
e = iPointer(dram, fp32, 1024, out)
a = iPointer(reg, fp32, 64)
again = iPointer(reg, fp32, 64)
m = iPointer(reg, fp32, 1)
up = iPointer(reg, fp32, 1)
b = iPointer(reg, fp32, 64)
d = iPointer(reg, fp32, 64)
w = iPointer(reg, fp32, 64)"""
ROW = "[0; (1,64); (64,1)]"
ONE = "[0; (1,1); (1,1)]"
HEAD = f"move.dram.reg.fp32 a{ROW}, x[64*i; (1,64); (64,1)]"
MAXIMUM = f"reduce.max.row.unit.fp32 m{ONE}, a{ROW}"
RAISED = f"unary.maxs.fp32 up{ONE}, m{ONE} [-3.0]"
SPREAD = f"broadcast.row.unit.fp32 b{ROW}, up{ONE}"
LESS = f"binary.sub.fp32 d{ROW}, a{ROW}, b{ROW}"
REST = (
    f"unary.exp.fp32 w{ROW}, d{ROW}",
    f"move.reg.dram.fp32 e[64*i; (1,64); (64,1)], w{ROW}",
)


def _graph(*lines: str):
    body = "\n".join(f"  {line}" for line in (*lines, *REST))
    return parsed(POINTERS, f"for i in 16 {{\n{body}\n}}", 1)


def _found(graph) -> list[bool]:
    return [AT_MOST_ZERO in iop.attrs for iop, _ in marked(graph).walk() if iop.name == "exp"]


KNOWN = {
    "its own maximum": (HEAD, MAXIMUM, RAISED, SPREAD, LESS),
    "computed again": (
        HEAD,
        f"move.dram.reg.fp32 again{ROW}, x[64*i; (1,64); (64,1)]",
        MAXIMUM,
        RAISED,
        SPREAD,
        LESS.replace(f" a{ROW}", f" again{ROW}"),
    ),
}
UNKNOWN = {
    "another tensor": (
        HEAD,
        f"move.dram.reg.fp32 again{ROW}, y[64*i; (1,64); (64,1)]",
        MAXIMUM,
        RAISED,
        SPREAD,
        LESS.replace(f" a{ROW}", f" again{ROW}"),
    ),
    "the minimum": (HEAD, MAXIMUM.replace("max", "min"), RAISED, SPREAD, LESS),
    "a part of the row": (HEAD, MAXIMUM.replace("a[0; (1,64)", "a[0; (1,32)"), RAISED, SPREAD, LESS),
    "lowered": (HEAD, MAXIMUM, RAISED.replace("maxs", "mins"), SPREAD, LESS),
    "the other way round": (HEAD, MAXIMUM, RAISED, SPREAD, f"binary.sub.fp32 d{ROW}, b{ROW}, a{ROW}"),
    "written between": (
        HEAD,
        MAXIMUM,
        RAISED,
        SPREAD,
        f"move.dram.reg.fp32 a{ROW}, y[64*i; (1,64); (64,1)]",
        LESS,
    ),
}


@pytest.mark.parametrize("lines", KNOWN.values(), ids=KNOWN)
def test_known(lines: tuple[str, ...]) -> None:
    """Whole rows, a row of -inf, one with an infinity, NaN of any payload: as the interpreter."""
    graph = _graph(*lines)
    assert _found(graph) == [True]
    rng = np.random.default_rng(0)
    x, y = (rng.normal(scale=40, size=(16, 64)).astype(np.float32) for _ in range(2))
    x[1], x[2, 5], x[3, 7] = -np.inf, np.inf, np.nan
    x[4, 9] = np.array([0x7FC001FF], np.uint32).view(np.float32)[0]
    x[5] = np.linspace(-110, 0, 64)
    check(graph, [x, y], 1e-6, 0)


@pytest.mark.parametrize("lines", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown(lines: tuple[str, ...]) -> None:
    graph = _graph(*lines)
    assert _found(graph) == [False]
    x, y = np.random.default_rng(1).normal(scale=20, size=(2, 16, 64)).astype(np.float32)
    check(graph, [x, y], 1e-6, 1e-6)
