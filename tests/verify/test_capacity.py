# SPDX-License-Identifier: Apache-2.0
"""Capacity: the peak of what is alive, by hand-counted cases, against the hardware model's limits."""

from __future__ import annotations

import re

import pytest
from uir_tvm.igraph import HardwareModel
from uir_tvm.verify import check
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.capacity import peak
from uir_tvm.verify.placement import Interference

from .graphs import DEVICE, clean, graph, only

ROW = "(1,256); (256,1)"  # 256 fp32: 1024 bytes; the device has 4096 of reg
HEAD = "\n".join(f"{name} = iPointer(reg, fp32, 256)" for name in "abcdef")


def fill(t: str) -> str:
    return f"fill.fp32 {t}[0; {ROW}] [0.0]\n"


def add(t: str, a: str, b: str) -> str:
    return f"binary.add.fp32 {t}[0; {ROW}], {a}[0; {ROW}], {b}[0; {ROW}]\n"


def loop(var: str, body: str) -> str:
    return f"for {var} in 2 {{\n{body}}}\n"


# body -> the pointers alive at the peak, and how many rows they take (an output may take an input's place)
CASES = {
    "all at once": (fill("a") + fill("b") + fill("c") + add("d", "a", "b") + add("d", "c", "d"), "abc", 3),
    "one after the other": (fill("a") + add("b", "a", "a") + fill("c") + add("d", "c", "c"), "a", 1),
    "dead after its last read": (
        fill("a") + fill("b") + add("c", "a", "b") + fill("d") + add("e", "c", "d"),
        "ab",
        2,
    ),
    "an input that lives on keeps its place": (fill("a") + add("b", "a", "a") + add("c", "a", "b"), "ab", 2),
    "an accumulator lives through the loop": (
        fill("a")
        + loop("k", fill("b") + add("c", "b", "b") + add("a", "a", "c") + fill("d") + add("e", "d", "d")),
        "ab",
        2,
    ),
    "carried from one iteration to the next": (
        fill("b") + loop("k", add("c", "b", "b") + fill("d") + add("e", "d", "d") + fill("b")),
        "bc",
        2,
    ),
    "read in the loop, written before it": (
        fill("a") + loop("k", add("c", "a", "a") + fill("d") + add("e", "d", "d")),
        "ac",
        2,
    ),
    "nested loops": (
        fill("a") + loop("k", loop("l", add("b", "a", "a")) + fill("c") + add("d", "c", "c")),
        "ab",
        2,
    ),
    "a part is written in each iteration": (
        loop("k", "fill.fp32 a[128*k; (1,128); (128,1)] [0.0]\n") + fill("b") + add("c", "a", "b"),
        "ab",
        2,
    ),
}


def build(body: str, **kwargs):
    return graph(HEAD + "\n" + body, **kwargs)


@pytest.mark.parametrize("name", CASES)
def test_the_peak_is_what_is_alive_at_once(name):
    body, alive, rows = CASES[name]
    program = GraphFacts(build(body))
    top = peak(program, "reg")
    assert "".join(sorted(str(x.pointer.name) for x in top.alive)) == alive
    assert top.bytes == 1024 * rows
    assert Interference.of(program, "reg").place().peak == top.bytes


FIVE = "".join(map(fill, "abcde")) + add("f", "a", "b") + add("f", "c", "d") + add("f", "e", "f")


def test_an_overflow_names_what_is_alive_and_what_would_fit():
    """Five rows of 1024 bytes in 4096; the sixth takes the place of one that dies."""
    fault = only(build(FIVE), "capacity")
    assert fault.what == "The reg of a unit overflows: 5120 bytes are alive at once."
    assert fault.need == "5120 bytes of reg"
    assert fault.limit == "4096 bytes on dev"
    for name in "abcde":
        assert f"{name}[0; {ROW}] 1024 bytes" in fault.where
    assert fault.where.startswith("fill.fp32 e[0;")
    # rows of 816 bytes would, but start at multiples of 32: 800 is the next that five times fits
    assert fault.remedy == "a tile of (1, 200) in place of (1, 256) would fit"


def tile_of(fault) -> tuple[int, int]:
    rows, cols = re.search(r"a tile of \((\d+), (\d+)\) in place", fault.remedy).groups()
    return int(rows), int(cols)


def matrices(rows: int, cols: int, extra: int = 0):
    """Two matrices and a row of each, of one shape; ``extra`` elements that no tile makes smaller."""
    box, col = f"({rows},{cols}); ({cols},1)", f"({rows},1); (1,1)"
    more = (
        f"e = iPointer(reg, fp32, {extra})\nfill.fp32 e[0; (1,{extra}); ({extra},1)] [0.0]\n" if extra else ""
    )
    use = f"unary.exp.fp32 e[0; (1,{extra}); ({extra},1)], e[0; (1,{extra}); ({extra},1)]\n" if extra else ""
    return graph(
        f"""
        a = iPointer(reg, fp32, {rows * cols})
        b = iPointer(reg, fp64, {rows * cols})
        c = iPointer(reg, fp32, {rows})
        {more}
        fill.fp32 a[0; {box}] [0.0]
        reduce.add.row.unit.fp32 c[0; {col}], a[0; {box}]
        cast.fp32.fp64 b[0; {box}], a[0; {box}]
        unary.exp.fp32 c[0; {col}], c[0; {col}]
        {use}"""
    )


@pytest.mark.parametrize(
    "shape, extra, tile",
    [((32, 32), 0, (10, 32)), ((32, 32), 512, (5, 32)), ((2, 600), 0, (1, 336)), ((1, 600), 0, (1, 336))],
)
def test_the_tile_that_is_named_fits_and_the_next_does_not(shape, extra, tile):
    fault = only(matrices(*shape, extra), "capacity")
    assert tile_of(fault) == tile
    clean(matrices(*tile, extra))
    rows, cols = tile
    larger = (rows, cols + 1) if rows == 1 else (rows + 1, cols)
    only(matrices(*larger, extra), "capacity")


def test_where_no_tile_fits_it_says_what_to_keep_in_dram():
    """Without the largest row the other two still exceed 4096 bytes."""
    sizes = {"a": 800, "b": 600, "c": 500}
    text = "\n".join(f"{name} = iPointer(reg, fp32, {n})" for name, n in sizes.items())
    for name, n in sizes.items():
        text += f"\nfill.fp32 {name}[0; (1,{n}); ({n},1)] [0.0]"
    for name, n in sizes.items():
        text += f"\nunary.exp.fp32 {name}[0; (1,{n}); ({n},1)], {name}[0; (1,{n}); ({n},1)]"
    assert only(graph(text), "capacity").remedy == "no tile fits; keep 'a', 'b' in dram instead"


def test_what_fits_exactly_passes():
    clean(build("".join(map(fill, "abcd")) + add("e", "a", "b") + add("f", "c", "d") + add("f", "e", "f")))


def test_addresses_start_where_the_hardware_model_says():
    """Nine bytes and three times 36: at multiples of a vector of 32 bytes by default, else of the figure."""
    text = "\n".join(f"{n} = iPointer(reg, fp32, 9)" for n in "abc")
    small = "(1,9); (9,1)"
    text += "".join(f"\nfill.fp32 {n}[0; {small}] [0.0]" for n in "abc")
    text += f"\nselect.fp32 a[0; {small}], m[0; {small}], b[0; {small}], c[0; {small}]"
    text = "m = iPointer(reg, bool, 9)\n" + text.replace(
        "\nfill.fp32 a", f"\nfill.bool m[0; {small}] [0]\nfill.fp32 a", 1
    )
    for figures, end in (
        ({}, 32 + 64 * 2 + 36),
        ({"reg_align": 4}, 36 * 3 + 9),
        ({"reg_align": 128}, 128 * 3 + 9),
    ):
        device = HardwareModel("dev", "test", 4, 8, 4096, 2048, 32, figures)
        memory = Interference.of(GraphFacts(graph(text, hardware=device)), "reg")
        assert memory.place().peak == end


def test_sram_counts_per_group():
    text = """
        s = iPointer(sram, fp32, {0})
        fill.fp32 s[{1}*(pid % 8); (1,{1}); ({1},1)] [0.0]
        """
    clean(graph(text.format(512, 64), (2, 8), DEVICE))
    (fault,) = check(graph(text.format(520, 65), (2, 8), DEVICE))
    assert (fault.rule, fault.need, fault.limit) == ("capacity", "2080 bytes of sram", "2048 bytes on dev")
    assert "sram of a group" in fault.what
