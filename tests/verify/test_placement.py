# SPDX-License-Identifier: Apache-2.0
"""Placement: of few pointers the best there is, against plain search; of many, never two in one byte."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import HardwareModel, IPointer
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.live_ranges import Live, lives
from uir_tvm.verify.placement import Interference, _Barriers, alignment

from .graphs import graph

ALIGN = 4


def memory(ranges: list[tuple[int, int, int]]) -> Interference:
    """Pointers of (bytes, first, last), none of which takes another's place."""
    lives = [
        Live(IPointer(f"p{k}", "reg", "int8", size), (), first, last, first, last)
        for k, (size, first, last) in enumerate(ranges)
    ]
    apart: list[set[int]] = [
        {j for j, y in enumerate(lives) if i != j and x.first <= y.last and y.first <= x.last}
        for i, x in enumerate(lives)
    ]
    return Interference(lives, apart, {}, ALIGN)


def test_the_best_fit_below_the_peak_is_the_tightest_gap() -> None:
    """Of 8 bytes at 0 and 4 at 12, which both are free by then, four bytes take the four."""
    found = memory([(8, 0, 0), (4, 0, 1), (4, 0, 0), (4, 0, 1), (4, 1, 1)])
    order, sizes = range(5), found.sizes()
    assert found._place(order, sizes, lowest=False) == [0, 8, 12, 16, 12]
    assert found._place(order, sizes, lowest=True) == [0, 8, 12, 16, 0]


@st.composite
def range_lists(draw, most: int) -> list[tuple[int, int, int]]:
    out = []
    for _ in range(draw(st.integers(1, most))):
        first, length = draw(st.integers(0, 6)), draw(st.integers(0, 4))
        out.append((draw(st.integers(1, 12)), first, first + length))
    return out


def least_peak(found: Interference, limit: int) -> int:
    """The least peak below a limit, by trying every aligned address for every pointer."""
    sizes = found.sizes()
    best = limit

    def search(at: list[int]) -> None:
        nonlocal best
        i = len(at)
        if i == len(sizes):
            best = min(best, max(a + s for a, s in zip(at, sizes, strict=True)))
            return
        for address in range(0, best - sizes[i], ALIGN):
            if all(
                address + sizes[i] <= at[j] or at[j] + sizes[j] <= address for j in found.apart[i] if j < i
            ):
                search([*at, address])

    search([])
    return best


@settings(max_examples=150, deadline=None)
@given(range_lists(5))
def test_few_pointers_have_the_least_peak(ranges: list[tuple[int, int, int]]) -> None:
    found = memory(ranges)
    placed = found.place()
    assert placed.peak == least_peak(found, placed.peak)


@settings(max_examples=100, deadline=None)
@given(range_lists(14), st.sets(st.integers(0, 13)))
def test_many_pointers_keep_apart(ranges: list[tuple[int, int, int]], gone: set[int]) -> None:
    """Also where some are left out: without bytes, they are in nobody's way."""
    found = memory(ranges)
    sizes = [0 if k in gone else size for k, size in enumerate(found.sizes())]
    placed = found.place(sizes)
    at = [placed.addresses[x.name] for x in found.ranges]
    assert all(a % ALIGN == 0 for a in at)
    for i, j in itertools.combinations(range(len(at)), 2):
        if j in found.apart[i] and sizes[i] and sizes[j]:
            assert at[i] + sizes[i] <= at[j] or at[j] + sizes[j] <= at[i]
    alive = max(
        sum(s for s, x in zip(sizes, found.ranges, strict=True) if x.first <= t <= x.last) for t in range(11)
    )
    assert alive <= placed.peak <= sum(-(-s // ALIGN) * ALIGN for s in sizes)


def test_alignment_comes_from_the_hardware_model() -> None:
    def model(figures: dict[str, int]) -> HardwareModel:
        return HardwareModel("m", "test", 1, 1, 64, 64, 16, figures)

    assert [alignment(model({}), level) for level in ("reg", "sram")] == [16, 16]
    figures = {"reg_align": 32, "sram_align": 128}
    assert [alignment(model(figures), level) for level in ("reg", "sram")] == [32, 128]


def test_the_best_of_all_orders_is_kept() -> None:
    """The first order, by size, needs 28 bytes."""
    found = memory([(8, 2, 3), (8, 3, 3), (12, 1, 1), (8, 1, 3)])
    order, lowest = next(iter(found._orders(found.sizes())))
    sizes = found.sizes()
    assert max(a + s for a, s in zip(found._place(order, sizes, lowest), sizes, strict=True)) == 28
    assert found.place().peak == 24


def test_the_place_of_one_input_is_taken_only_beside_the_other() -> None:
    """An output of 16 bytes in the place of the first would overlap the second, which it may not in part."""
    ranges = [(8, 0, 1), (8, 0, 1), (16, 1, 2)]
    found = memory(ranges)
    apart = [{1}, {0}, set()]
    shared = Interference(found.ranges, apart, {(0, 2): 0, (1, 2): 0}, ALIGN)
    assert shared._place(range(3), shared.sizes(), lowest=False) == [0, 8, 8]


SYNC = "sync.sram s[0; (1,1); (1,1)], s[0; (1,1); (1,1)]"
BETWEEN = {
    "nothing": ("", "", False),
    "a barrier before": (SYNC, "", True),
    "a barrier of the unit": (SYNC.replace("sync.sram", "sync.reg").replace("s[", "r["), "", False),
    "a reduction of all units": (
        "reduce.add.row.group.fp32 r[0; (1,1); (1,1)], t[0; (1,1); (1,1)] "
        "[buffer=s[0; (1,8); (8,1)], group_size=8]",
        "",
        True,
    ),
    "a reduction of half of the units": (
        "reduce.add.row.group.fp32 r[0; (1,1); (1,1)], t[0; (1,1); (1,1)] "
        "[buffer=s[4*(pid % 8 / 4); (1,4); (4,1)], group_size=4]",
        "",
        False,
    ),
}


def separated(between: str, behind: str, extent: int) -> bool:
    """Whether barriers part what uses a from what uses b, in a loop."""
    program = GraphFacts(
        graph(
            f"""
            a = iPointer(sram, fp32, 8)
            b = iPointer(sram, fp32, 8)
            s = iPointer(sram, fp32, 8)
            r = iPointer(reg, fp32, 1)
            t = iPointer(reg, fp32, 1)
            for k in {extent} {{
              fill.fp32 t[0; (1,1); (1,1)] [1.0]
              move.reg.sram.fp32 a[pid % 8; (1,1); (1,1)], t[0; (1,1); (1,1)]
              {between}
              move.reg.sram.fp32 b[pid % 8; (1,1); (1,1)], t[0; (1,1); (1,1)]
              {behind}
            }}""",
            (1, 8),
        )
    )
    by_name = {str(x.name): x for x in lives(program, "sram")}
    return _Barriers(program).separates(by_name["a"], by_name["b"])


@pytest.mark.parametrize("name", BETWEEN)
def test_what_all_units_pass_separates_two_places(name: str) -> None:
    between, behind, wanted = BETWEEN[name]
    assert separated(between, behind, 1) is wanted


def test_around_a_loop_a_second_barrier_is_passed() -> None:
    """Otherwise a unit that begins its second iteration meets one that is late in its first."""
    assert not separated(SYNC, "", 2)
    assert separated(SYNC, SYNC, 2)
