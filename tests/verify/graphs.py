# SPDX-License-Identifier: Apache-2.0
"""Graphs of the verifier's tests, written as text, and a small device that has every memory."""

from __future__ import annotations

import pytest
from uir_tvm.errors import VerifyError
from uir_tvm.igraph import HardwareModel, IGraph, parse_igraph
from uir_tvm.verify import ALL, check

#: Groups of eight units that share sram.
DEVICE = HardwareModel("dev", "test", 4, 8, 4096, 2048, 32, {})


def graph(body: str, parallel: tuple[int, int] = (4, 1), hardware: HardwareModel = DEVICE) -> IGraph:
    """A graph of that body (pointers, loops, iOps)."""
    return parse_igraph(
        f"igraph g on {hardware.name} parallel ({parallel[0]}, {parallel[1]}) {{\n{body}\n}}", hardware
    )


def seed(stride: int) -> IGraph:
    """The definition's example: 64 units, 2 loops, (2, 32) tiles at ``4096*lid + stride*pid`` of 8192."""
    return graph(
        f"""
        a = iPointer(dram, fp32, 8192, in)
        c = iPointer(dram, fp32, 8192, out)
        b = iPointer(reg, fp32, 64)
        for lid in 2 {{
          move.dram.reg.fp32 b[0; (2,32); (32,1)], a[4096*lid + {stride}*pid; (2,32); (32,1)]
          unary.muls.fp32 b[0; (2,32); (32,1)], b[0; (2,32); (32,1)] [2.0]
          move.reg.dram.fp32 c[4096*lid + 64*pid; (2,32); (32,1)], b[0; (2,32); (32,1)]
        }}""",
        (64, 1),
    )


def only(g: IGraph, rule: str) -> VerifyError:
    """The one fault of a graph, which must be of that rule."""
    found = check(g)
    assert [f.rule for f in found] == [rule], "\n".join(map(str, found))
    return found[0]


def clean(g: IGraph, rules: tuple[str, ...] = ALL) -> None:
    """The graph has no fault."""
    found = check(g, rules)
    if found:
        pytest.fail("\n".join(map(str, found)))
