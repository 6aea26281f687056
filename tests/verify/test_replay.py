# SPDX-License-Identifier: Apache-2.0
"""A replay visits what it must and no more, and tells the first point at fault."""

from __future__ import annotations

import tracemalloc

from uir_tvm.verify import check, initialised
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.replay import cost, first_unwritten, memory

from .graphs import graph


def accesses(body: str, parallel=(4, 1)):
    g = graph("r = iPointer(reg, fp32, 64)\nt = iPointer(reg, fp32, 64)\n" + body, parallel)
    return GraphFacts(g).by_pointer["r"]


def test_the_first_point_is_told():
    """Iteration k of unit pid reads element 8*k + pid + 8, of which the fill before wrote those below 24."""
    found = first_unwritten(
        accesses(
            """
            fill.fp32 r[0; (1,24); (24,1)] [0.0]
            for k in 4 { unary.exp.fp32 t[0; (1,1); (1,1)], r[8*k + pid + 8; (1,1); (1,1)] }"""
        ),
        64,
    )
    assert [(f.values, f.element) for f in found] == [({"pid": 0, "k": 2}, 24)]


def test_loops_that_do_not_matter_run_once():
    """A million iterations of the same elements cost what one costs."""
    fill = "fill.fp32 r[0; (1,8); (8,1)] [0.0]\n"
    body = f"for k in 1000000 {{ {fill} {fill} }}"
    once = accesses(body)
    assert cost(once) == 2 * (1000 + 4 * 8)
    assert first_unwritten(once, 64) == []
    assert cost(accesses(body.replace("1000000", "8").replace("r[0", "r[8*k"))) == 16 * (1000 + 4 * 8)


def test_leaders_alone_hold_what_a_group_reduces():
    one, buffer = "[0; (1,1); (1,1)]", "s[0; (1,4); (4,1)]"
    body = f"""
        s = iPointer(sram, fp32, 4)
        fill.fp32 t{one} [0.0]
        reduce.add.row.group.fp32 r{one}, t{one} [buffer={buffer}, group_size=4]
        unary.exp.fp32 t{one}, r{one}"""
    (hole,) = first_unwritten(accesses(body, (1, 8)), 64)
    assert hole.values == {"pid": 1}


def test_a_replay_takes_no_more_memory_than_it_says():
    """Units that write parts of a large pointer of their own: gigabytes of marks, which isl does without."""
    body = """
        for k in 4 { fill.fp32 r[8*(pid % 4) + 32*k; (1,8); (8,1)] [0.0] }
        for k in 4 { unary.exp.fp32 t[0; (1,8); (8,1)], r[8*(pid % 4) + 32*k; (1,8); (8,1)] }"""
    small = accesses(body)
    tracemalloc.start()
    try:
        first_unwritten(small, 64)
        assert tracemalloc.get_traced_memory()[1] < memory(small, 64) + (1 << 16)
        tracemalloc.reset_peak()
        size = 1 << 20
        large = graph(f"r = iPointer(reg, fp32, {size})\nt = iPointer(reg, fp32, 64)\n" + body, (1 << 13, 1))
        assert memory(GraphFacts(large).by_pointer["r"], size) > 1 << 33 > initialised.MAX_BYTES
        check(large, ["uninitialised"])
        assert tracemalloc.get_traced_memory()[1] < initialised.MAX_BYTES
    finally:
        tracemalloc.stop()
