# SPDX-License-Identifier: Apache-2.0
"""Rows of tiles at blocks: which tiles change, that elements stay, and what is left alone."""

from __future__ import annotations

import re

import pytest
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, IGraph, parse_igraph, print_igraph
from uir_tvm.optimize import PASSES, align_rows, optimize
from uir_tvm.schedule import apply_default
from uir_tvm.verify import verify

from tests.extracted import extracted

from ..corpus import recipes
from .equal import assert_same_bits

BLOCK = 32
DEVICE = HardwareModel("blocks", "toy", 8, 1, 2**16, 0, 64, {"row_align_bytes": BLOCK})


def graph(lines: str, pointers: str = "", device: HardwareModel = DEVICE) -> IGraph:
    made = parse_igraph(
        f"""igraph g on {device.name} parallel (2, 1) {{
          x = iPointer(dram, fp32, 512, in)
          y = iPointer(dram, fp32, 512, inout)
          r = iPointer(reg, fp32, 30)
          {pointers}
          {lines}
        }}""",
        device,
    )
    verify(made)
    return made


#: Lines -> how r is seen afterwards (text of its slices in order), or None where it stays.
CASES = {
    "rows": (
        "move.dram.reg.fp32 r[0; (6,5); (5,1)], x[30*pid; (6,5); (5,1)]\n"
        "move.reg.dram.fp32 y[30*pid; (6,5); (5,1)], r[0; (6,5); (5,1)]",
        ["r[0; (6,5); (8,1)]", "r[0; (6,5); (8,1)]"],
    ),
    "one row of all of them": (
        "fill.fp32 r[0; (1,30); (30,1)] [1.0]\n"
        "move.reg.dram.fp32 y[30*pid; (6,5); (5,1)], r[0; (6,5); (5,1)]",
        ["r[0; (6,5); (8,1)]", "r[0; (6,5); (8,1)]"],
    ),
    "pieces of rows": (
        "fill.fp32 r[0; (6,5); (5,1)] [1.0]\n"
        "for k in 5 {\nunary.exp.fp32 r[k; (6,1); (5,1)], r[k; (6,1); (5,1)]\n}\n"
        "for m in 6 {\nunary.exp.fp32 r[5*m + 1; (1,4); (4,1)], r[5*m + 1; (1,4); (4,1)]\n}\n"
        "move.reg.dram.fp32 y[30*pid; (6,5); (5,1)], r[0; (6,5); (5,1)]",
        [
            "r[0; (6,5); (8,1)]",
            *["r[k; (6,1); (8,1)]"] * 2,
            *["r[8*m + 1; (1,4); (4,1)]"] * 2,
            "r[0; (6,5); (8,1)]",
        ],
    ),
    "seen transposed": (
        "move.dram.reg.fp32 r[0; (6,5); (5,1)], x[30*pid; (6,5); (5,1)]\n"
        "move.reg.dram.fp32 y[30*pid; (5,6); (6,1)], r[0; (5,6); (1,5)]",
        ["r[0; (6,5); (8,1)]", "r[0; (5,6); (1,8)]"],
    ),
    "a flat bound between rows": (
        "move.dram.reg.fp32 r[0; (1,30); (30,1); cols :40 - 30*pid],"
        " x[30*pid; (1,30); (30,1); cols :40 - 30*pid]\n"
        "move.reg.dram.fp32 y[30*pid; (6,5); (5,1); rows :8 - 6*pid], r[0; (6,5); (5,1); rows :8 - 6*pid]",
        ["r[0; (6,5); (8,1); rows :-6*pid + 8]", "r[0; (6,5); (8,1); rows :-6*pid + 8]"],
    ),
    "a flat bound within a row": (
        "move.dram.reg.fp32 r[0; (1,30); (30,1)], x[30*pid; (1,30); (30,1)]\n"
        "unary.exp.fp32 r[0; (6,5); (5,1)], r[0; (6,5); (5,1)]\n"
        "move.reg.dram.fp32 y[30*pid; (1,30); (30,1); cols :41 - 30*pid],"
        " r[0; (1,30); (30,1); cols :41 - 30*pid]",
        None,
    ),
    "seen at two widths": (
        "fill.fp32 r[0; (6,5); (5,1)] [1.0]\nmove.reg.dram.fp32 y[30*pid; (5,6); (6,1)], r[0; (5,6); (6,1)]",
        None,
    ),
    "columns stay dense": (
        "move.dram.reg.fp32 r[0; (30,1); (1,1)], x[30*pid; (30,1); (1,1)]\n"
        "move.reg.dram.fp32 y[30*pid; (30,1); (1,1)], r[0; (30,1); (1,1)]",
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_slices(case: str) -> None:
    text, expected = CASES[case]
    before = graph(text)
    after = align_rows.run(before)
    if expected is None:
        assert after is before
        return
    verify(after)
    seen = re.findall(r"\br\[[^\]]*\]", print_igraph(after))
    assert seen == expected
    assert int(next(p.size for p in after.pointers if str(p.name) == "r")) == 48
    assert_same_bits(before, after)


def test_rows_of_whole_blocks_stay() -> None:
    before = graph(
        "move.dram.reg.fp32 r[0; (3,8); (8,1)], x[24*pid; (3,8); (8,1)]\n"
        "move.reg.dram.fp32 y[24*pid; (3,8); (8,1)], r[0; (3,8); (8,1)]"
    )
    assert align_rows.run(before) is before


def test_a_device_without_blocks_is_left_alone() -> None:
    text, _ = CASES["rows"]
    before = graph(text, device=HardwareModel("flat", "toy", 8, 1, 2**16, 0, 64, {}))
    assert align_rows.run(before) is before


def test_what_would_not_fit_stays() -> None:
    """Two tiles of 6x5: dense they take 240 bytes, with rows apart 384; one of them has room."""
    small = HardwareModel("small", "toy", 8, 1, 320, 0, 64, {"row_align_bytes": BLOCK})
    before = graph(
        "move.dram.reg.fp32 r[0; (6,5); (5,1)], x[30*pid; (6,5); (5,1)]\n"
        "move.dram.reg.fp32 q[0; (6,5); (5,1)], x[30*pid + 60; (6,5); (5,1)]\n"
        "binary.add.fp32 r[0; (6,5); (5,1)], r[0; (6,5); (5,1)], q[0; (6,5); (5,1)]\n"
        "move.reg.dram.fp32 y[30*pid; (6,5); (5,1)], r[0; (6,5); (5,1)]",
        "q = iPointer(reg, fp32, 30)",
        small,
    )
    after = align_rows.run(before)
    sizes = {str(p.name): int(p.size) for p in after.pointers if p.level == "reg"}
    assert sizes == {"r": 48, "q": 30}
    assert_same_bits(before, after)


@pytest.mark.parametrize("case", ["softmax 1", "layer norm 1", "row sum 1", "transpose 1", "swish 1"])
def test_recipes_keep_their_bits(case: str) -> None:
    """Operators whose rows are no whole blocks, as a vector core's schedule has them."""
    # one core: with more of them a tile of the smallest operators has one row
    full = hardware.get("910b2", "ascend")
    device = HardwareModel(
        full.name, full.kind, 1, 1, full.reg_bytes, full.sram_bytes, full.vector_bytes, full.figures
    )
    name = next(c for c, _ in recipes.pairs() if c.startswith(case.rsplit(" ", 1)[0]) and _odd(c))
    before = extracted(apply_default(recipes.example(name).func, device), device)
    rows = [row.name for row in PASSES if row.name != "allocate"]
    plain = optimize(before, [row for row in rows if row != "align_rows"]).graph
    after = optimize(before, rows).graph
    assert print_igraph(after) != print_igraph(plain)
    assert_same_bits(before, after)


def _odd(case: str) -> bool:
    return any(shape in case for shape in ("197x3", "33x77", "2x13x37", "3x33x65", "17x33"))
