# SPDX-License-Identifier: Apache-2.0
"""Capacity: the peak of what is alive, by hand-counted cases, against the hardware model's limits."""

from __future__ import annotations

import pytest
from uir_tvm.verify import check
from uir_tvm.verify.access import Program
from uir_tvm.verify.capacity import peak

from .graphs import DEVICE, clean, graph, only

ROW = "(1,256); (256,1)"  # 256 fp32: 1024 bytes; the device has 4096 of reg
HEAD = "\n".join(f"{name} = iPointer(reg, fp32, 256)" for name in "abcdef")


def fill(t: str) -> str:
    return f"fill.fp32 {t}[0; {ROW}] [0.0]\n"


def add(t: str, a: str, b: str) -> str:
    return f"binary.add.fp32 {t}[0; {ROW}], {a}[0; {ROW}], {b}[0; {ROW}]\n"


def loop(var: str, body: str) -> str:
    return f"for {var} in 2 {{\n{body}}}\n"


# body -> how many of the pointers are alive at the peak, and their names
CASES = {
    "all at once": (fill("a") + fill("b") + fill("c") + add("d", "a", "b") + add("d", "c", "d"), "abcd"),
    "one after the other": (fill("a") + add("b", "a", "a") + fill("c") + add("d", "c", "c"), "ab"),
    "dead after its last read": (
        fill("a") + fill("b") + add("c", "a", "b") + fill("d") + add("e", "c", "d"),
        "abc",
    ),
    "an accumulator lives through the loop": (
        fill("a")
        + loop("k", fill("b") + add("c", "b", "b") + add("a", "a", "c") + fill("d") + add("e", "d", "d")),
        "abc",
    ),
    "carried from one iteration to the next": (
        fill("b") + loop("k", add("c", "b", "b") + fill("d") + add("e", "d", "d") + fill("b")),
        "bde",
    ),
    "read in the loop, written before it": (
        fill("a") + loop("k", add("c", "a", "a") + fill("d") + add("e", "d", "d")),
        "ade",
    ),
    "nested loops": (
        fill("a") + loop("k", loop("l", add("b", "a", "a")) + fill("c") + add("d", "c", "c")),
        "acd",
    ),
    "a part is written in each iteration": (
        loop("k", "fill.fp32 a[128*k; (1,128); (128,1)] [0.0]\n") + fill("b") + add("c", "a", "b"),
        "abc",
    ),
}


def build(body: str, **kwargs):
    return graph(HEAD + "\n" + body, **kwargs)


@pytest.mark.parametrize("name", CASES)
def test_the_peak_is_what_is_alive_at_once(name):
    body, alive = CASES[name]
    top = peak(Program(build(body)), "reg")
    assert "".join(sorted(str(x.pointer.name) for x in top.alive)) == alive
    assert top.bytes == 1024 * len(alive)


FIVE = "".join(map(fill, "abcd")) + "".join(add("e", x, y) for x, y in ("ab", "cd"))


def test_an_overflow_names_what_is_alive_and_what_would_fit():
    """Five rows of 1024 bytes in 4096."""
    fault = only(build(FIVE), "capacity")
    assert fault.what == "The reg of a unit overflows: 5120 bytes are alive at once."
    assert fault.need == "5120 bytes of reg"
    assert fault.limit == "4096 bytes on dev"
    for name in "abcde":
        assert f"{name}[0; {ROW}] 1024 bytes" in fault.where
    assert fault.where.startswith("binary.add.fp32 e[0;")
    assert fault.remedy == "a tile of (1, 204) in place of (1, 256) would fit"


def test_rows_are_scaled_where_there_are_rows():
    g = graph(
        """
        a = iPointer(reg, fp32, 1024)
        b = iPointer(reg, fp64, 1024)
        fill.fp32 a[0; (32,32); (32,1)] [0.0]
        cast.fp32.fp64 b[0; (32,32); (32,1)], a[0; (32,32); (32,1)]"""
    )
    fault = only(g, "capacity")
    assert fault.need == "12288 bytes of reg"  # 4096 of a and 8192 of b
    assert fault.remedy == "a tile of (10, 32) in place of (32, 32) would fit"


def test_what_fits_exactly_passes():
    clean(build(fill("a") + fill("b") + fill("c") + add("d", "a", "b") + add("d", "c", "d")))


def test_sram_counts_per_group():
    text = """
        s = iPointer(sram, fp32, {0})
        fill.fp32 s[{1}*(pid % 8); (1,{1}); ({1},1)] [0.0]
        """
    clean(graph(text.format(512, 64), (2, 8), DEVICE))
    (fault,) = check(graph(text.format(520, 65), (2, 8), DEVICE))
    assert (fault.rule, fault.need, fault.limit) == ("capacity", "2080 bytes of sram", "2048 bytes on dev")
    assert "sram of a group" in fault.what
