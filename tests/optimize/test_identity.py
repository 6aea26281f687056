# SPDX-License-Identifier: Apache-2.0
"""Identities and moves of elements onto themselves go; other moves within a pointer stay."""

from __future__ import annotations

import pytest
from uir_tvm.optimize import identity

from .toy import applied, left_alone, mnemonics, toy

LOAD = "  a = iPointer(reg, fp32, 64)\n  move.dram.reg.fp32 a[0; (8,8); (8,1)], x[0; (8,8); (8,1)]\n"
STORE = "\n".join(f"  move.reg.dram.fp32 y[{64 * k}; (8,8); (8,1)], a[0; (8,8); (8,1)]" for k in range(4))


@pytest.mark.parametrize(
    "line",
    [
        "identity [a[0; (8,8); (8,1)]], [a[0; (2,32); (32,1)]]",
        "identity [a[0; (4,8); (8,1)], a[32; (4,8); (8,1)]], [a[0; (8,8); (8,1)]]",
        "move.reg.reg.fp32 a[0; (8,8); (8,1)], a[0; (8,8); (8,1)]",
        "move.reg.reg.fp32 a[0; (8,8); (8,1)], a[0; (8,8); (8,1)] [pad=1.0]",
        "move.reg.reg.fp32 a[0; (1,64); (7,1)], a[0; (1,64); (64,1)]",
    ],
)
def test_it_goes(line: str) -> None:
    made = applied(identity, toy(f"{LOAD}  {line}\n{STORE}"))
    assert mnemonics(made) == ["move.dram.reg.fp32", *["move.reg.dram.fp32"] * 4]


@pytest.mark.parametrize(
    "line",
    [
        "move.reg.reg.fp32 a[0; (8,4); (8,1)], a[4; (8,4); (8,1)]",
        "move.reg.reg.fp32 a[0; (8,8); (8,1)], a[0; (8,8); (8,1); rows 2:5] [pad=1.0]",
        "move.reg.reg.fp32 a[0; (1,2); (2,1)], a[0; (1,2); (2,0)]",
    ],
)
def test_it_stays(line: str) -> None:
    left_alone(identity, toy(f"{LOAD}  {line}\n{STORE}"))
