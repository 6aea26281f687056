# SPDX-License-Identifier: Apache-2.0
"""Alignment: what is proved is the greatest common divisor, and a move that states more is refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IPointer, ISlice, parse_igraph, print_igraph
from uir_tvm.verify import check
from uir_tvm.verify.alignment import proved

from ..igraph.strategies import affines
from .graphs import DEVICE, clean, graph


def load(align: int, offset: str = "64*pid + 8*k", stride: int = 32):
    return graph(
        f"""
        a = iPointer(dram, fp16, 512, in)
        r = iPointer(reg, fp16, 64)
        for k in 2 {{
          move.dram.reg.fp16 r[0; (2,16); (16,1)], a[{offset}; (2,16); ({stride},1)] [align={align}]
        }}"""
    )


@pytest.mark.parametrize("align", [1, 2, 4, 8, 16])
def test_what_is_so_may_be_said(align):
    g = load(align)
    clean(g)
    assert parse_igraph(print_igraph(g), DEVICE) == g


@pytest.mark.parametrize(
    ("align", "offset", "stride", "witness"),
    [
        (32, "64*pid + 8*k", 32, {"pid": 0, "k": 1, "row": 0}),
        (32, "64*pid", 24, {"pid": 0, "k": 0, "row": 1}),
        (32, "8*(pid / 2) + 32*k", 32, {"pid": 2, "k": 0, "row": 0}),
        (4, "64*pid + 1", 32, {"pid": 0, "k": 0, "row": 0}),
        (0, "64*pid", 32, {}),
    ],
)
def test_what_is_not_so_is_found(align, offset, stride, witness):
    faults = check(load(align, offset, stride))
    assert {fault.rule for fault in faults} == {"alignment"}
    fault = faults[-1]
    assert {name: fault.witness.get(name) for name in witness} == witness
    assert f"{align} bytes" in str(fault)


@settings(max_examples=200, deadline=None)
@given(affines(("pid", "k")), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(-9, 9))
def test_it_is_the_greatest(offset, pid, k, rows, stride):
    piece = ISlice(IPointer("a", "dram", "int16", 9, "in"), offset, (rows, 4), (stride, 1))
    starts = [
        2 * (offset.evaluate({"pid": p, "k": q}) + r * stride)
        for p in range(pid) for q in range(k) for r in range(rows)
    ]  # fmt: skip
    assert proved(piece, {"pid": pid, "k": k}) == math.gcd(*starts)
