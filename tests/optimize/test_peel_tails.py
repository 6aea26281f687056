# SPDX-License-Identifier: Apache-2.0
"""Tail specialisation: masks go where they say nothing, loops are cut where they begin to, values stay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph, walk_body
from uir_tvm.igraph.nodes import Loop
from uir_tvm.optimize import peel_tails
from uir_tvm.optimize.figures import peak_bytes
from uir_tvm.verify import verify

from ..corpus import recipes
from ..igraph.strategies import random_inputs

HARDWARE = HardwareModel("host", "cpu", 8, 1, 2**20, 0, 64, {})


def copying(
    shape: tuple[int, int],
    loops: str,
    offset: str,
    bounds: str,
    size: int,
    parallel: int = 1,
    *,
    more: str = "",
    stride: int | None = None,
    role: str = "out",
) -> IGraph:
    """A graph that takes exponentials in tiles; ``loops`` opens as many braces as it says."""
    rows, cols = shape
    tile, place = (f"({rows},{cols}); ({step},1){bounds}" for step in (cols, stride or cols))
    return parse_igraph(
        f"""igraph g on host parallel ({parallel}, 1) {{
          x = iPointer(dram, fp32, {size}, in)
          y = iPointer(dram, fp32, {size}, {role})
          r = iPointer(reg, fp32, {rows * cols})
          {loops}
            move.dram.reg.fp32 r[0; {tile}], x[{offset}; {place}]
            unary.exp.fp32 r[0; {tile}], r[0; {tile}]
            move.reg.dram.fp32 y[{offset}; {place}], r[0; {tile}]
            {more}
          {"}" * loops.count("{")}
        }}""",
        HARDWARE,
    )


def equal(before: IGraph, after: IGraph) -> None:
    verify(after)
    given_ = random_inputs(before, 3)
    for old, new in zip(interpreter.run(before, *given_), interpreter.run(after, *given_), strict=True):
        assert old.tobytes() == new.tobytes()


def masks(body) -> int:
    return sum(b is not None for iop, _ in walk_body(body) for s in iop.slices() for b in s.valid)


def test_the_last_iteration_alone_keeps_its_mask():
    before = copying((4, 8), "for k in 4 {", "32*k", "; rows :14 - 4*k", 112)
    verify(before)
    after = peel_tails.run(before)
    equal(before, after)
    assert isinstance(after.body[0], Loop) and after.body[0].extent == 3 and masks(after.body[:1]) == 0
    assert masks(after.body[1:]) == 6 and len(after.body) == 4
    assert peel_tails.run(after) is after


def test_first_and_last_iterations_of_a_padded_load():
    """A window that hangs over both ends of its rows."""
    inside = "cols 8 - 16*k:88 - 16*k"
    before = parse_igraph(
        f"""igraph g on host parallel (1, 1) {{
          x = iPointer(dram, fp32, 80, in)
          y = iPointer(dram, fp32, 96, out)
          r = iPointer(reg, fp32, 16)
          for k in 6 {{
            move.dram.reg.fp32 r[0; (1,16); (16,1)], x[16*k - 8; (1,16); (16,1); {inside}] [pad=0.0]
            move.reg.dram.fp32 y[16*k; (1,16); (16,1)], r[0; (1,16); (16,1)]
          }}
        }}""",
        HARDWARE,
    )
    verify(before)
    after = peel_tails.run(before)
    equal(before, after)
    assert [type(n).__name__ for n in after.body] == ["IOp", "IOp", "Loop", "IOp", "IOp"]
    assert after.body[2].extent == 4 and "pad" not in after.body[2].body[0].attrs


def test_both_loops_of_a_nest_are_cut_and_every_loop_has_a_name_of_its_own():
    before = copying(
        (4, 8), "for i in 3 { for k in 4 {", "120*i + 8*k", "; rows :10 - 4*i; cols :30 - 8*k", 300, stride=30
    )
    verify(before)
    after = peel_tails.run(before)
    equal(before, after)
    names = [str(n.var) for n in after.body if isinstance(n, Loop)]
    names += [str(m.var) for n in after.body if isinstance(n, Loop) for m in n.body if isinstance(m, Loop)]
    assert len(names) == len(set(names)) and len(names) == 3


def test_several_masked_iterations_stay_a_loop():
    before = copying((4, 8), "for k in 8 {", "32*k", "; rows :4 - 2*(k/5)", 256, role="inout")
    after = peel_tails.run(before)
    equal(before, after)
    assert [n.extent for n in after.body] == [5, 3] and masks(after.body[:1]) == 0


@pytest.mark.parametrize(
    "graph",
    [
        copying((4, 8), "for k in 2 {", "64*pid + 32*k", "; rows :26 - 8*pid - 4*k", 208, 4),
        copying((4, 8), "for k in 4 [pipeline=2] {", "32*k", "; rows :14 - 4*k", 112),
        copying((4, 8), "for k in 4 {", "8*k", "; rows :4 - k", 32),
    ],
    ids=["pid decides in the last unit", "a pipeline", "fewer than half would lose their masks"],
)
def test_what_stays_as_it_is(graph):
    assert peel_tails.run(graph) is graph


def test_pid_does_not_matter_where_every_unit_agrees():
    """The bound names pid, but no unit reaches it before the last iteration."""
    before = copying((4, 8), "for k in 4 {", "112*pid + 32*k", "; rows :14 - 4*k + pid/4", 448, 4)
    after = peel_tails.run(before)
    equal(before, after)
    assert after.body[0].extent == 3


def test_bounds_that_say_nothing_go_and_empty_boxes_too():
    before = copying(
        (4, 8),
        "for k in 3 {",
        "32*k + 96*pid",
        "; rows pid%2 - 1:4 + k; cols :8*(pid/2) - 4*(pid/2)*2 + 8",
        192,
        2,
        more="fill.fp32 r[0; (4,8); (8,1); rows :k - 2] [7.0]",
    )
    verify(before)
    after = peel_tails.run(before)
    equal(before, after)
    assert masks(after.body) == 0 and not any(iop.op == "fill" for iop, _ in after.walk())


def test_a_padded_move_without_source_becomes_a_fill():
    before = parse_igraph(
        """igraph g on host parallel (1, 1) {
          x = iPointer(dram, fp32, 8, in)
          y = iPointer(dram, fp32, 8, out)
          r = iPointer(reg, fp32, 8)
          move.dram.reg.fp32 r[0; (1,8); (8,1)], x[8; (1,8); (8,1); cols :0] [pad=2.5]
          move.reg.dram.fp32 y[0; (1,8); (8,1)], r[0; (1,8); (8,1)]
        }""",
        HARDWARE,
    )
    verify(before)
    after = peel_tails.run(before)
    equal(before, after)
    assert after.body[0].op == "fill"


def test_growth_is_limited():
    """Each of five nested loops has a tail: all of them cut would be 2**5 bodies of 12 iOps."""
    opens = "".join(f"for k{d} in 2 {{ " for d in range(5))
    offset = " + ".join(f"{2 * 4**d}*k{d}" for d in range(5))
    bounds = "; cols :" + " - ".join(["2", *(f"k{d}*0" for d in range(5))])
    fills = "\n".join(
        f"fill.fp32 r[0; (1,2); (2,1); cols :3 - 2*k{d}] [1.0]" for d in range(5) for _ in range(2)
    )
    n = 2 * 4**5
    before = parse_igraph(
        f"""igraph g on host parallel (1, 1) {{
          x = iPointer(dram, fp32, {n}, inout)
          r = iPointer(reg, fp32, 2)
          {opens}
            move.dram.reg.fp32 r[0; (1,2); (2,1)], x[{offset}; (1,2); (2,1){bounds}] [pad=0.0]
            {fills}
            move.reg.dram.fp32 x[{offset}; (1,2); (2,1)], r[0; (1,2); (2,1)]
          {"}" * 5}
        }}""",
        HARDWARE,
    )
    after = peel_tails.run(before)
    equal(before, after)
    count = sum(1 for _ in after.walk())
    assert 12 < count <= max(peel_tails.MAX_GROWTH * 12, peel_tails.SMALL)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 5), st.integers(1, 8), st.integers(1, 4), st.integers(1, 9), st.integers(0, 30),
    st.sampled_from((1, 1, 2)),
)  # fmt: skip
def test_random_tails_keep_values(loops, inner, rows, cols, ragged, parallel):
    """Rows dealt to units, two loops and tiles, the last of them ragged."""
    n = max(parallel * loops * inner * rows - ragged, 1)
    offset = f"{cols}*({rows}*k + {rows * inner}*i + {rows * inner * loops}*pid)"
    bounds = f"; rows :{n} - {rows}*k - {rows * inner}*i - {rows * inner * loops}*pid"
    before = copying(
        (rows, cols), f"for i in {loops} {{ for k in {inner} {{", offset, bounds, n * cols, parallel
    )
    verify(before)
    after = peel_tails.run(before)
    equal(before, after)
    again = peel_tails.run(after)
    assert masks(again.body) <= masks(after.body)


def test_copies_of_a_body_share_no_register() -> None:
    """Else every value of the body would be alive from the first copy to the last, all at once."""
    graph = recipes.graph("log softmax 3x4096", "cpu")
    assert peak_bytes(peel_tails.run(graph), "reg") == peak_bytes(graph, "reg")
