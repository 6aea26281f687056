# SPDX-License-Identifier: Apache-2.0
"""Values that are read once, right where they are made, have no cell; all others have one."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx
from tvm_ffi.structural import structural_walk
from uir_tvm.igraph import IGraph
from uir_tvm.target.cpu.lower import lower

from .support import check, parsed, signature

COLS = 48
TILE = f"[0; (1,{COLS}); ({COLS},1)]"


def chain(*made: str, dtype: str = "fp32", registers: str = "abc", result: str = "c") -> IGraph:
    """A row of x, some iOps, and a register stored into o."""
    names = "".join(f"{name} = iPointer(reg, {dtype}, {COLS})\n" for name in registers)
    return parsed(
        f"x = iPointer(dram, {dtype}, {COLS}, in)\no = iPointer(dram, {dtype}, {COLS}, out)\n{names}",
        f"move.dram.reg.{dtype} a{TILE}, x{TILE}\n"
        + "".join(f"{each.format(t=TILE, d=dtype)}\n" for each in made)
        + f"move.reg.dram.{dtype} o{TILE}, {result}{TILE}",
    )


def cells(graph: IGraph) -> int:
    """How many cells its code has."""
    found: list[str] = []

    def note(statement: tirx.AllocBuffer) -> None:
        found.append(str(statement.buffer.name))

    structural_walk(lower(graph, signature(graph)).body, (tirx.AllocBuffer, note))
    return sum(name.startswith("cell") for name in found)


SCALED, SHIFTED = "unary.muls.{d} b{t}, a{t} [3.0]", "unary.adds.{d} c{t}, b{t} [1.5]"
SQUARED = "binary.mul.{d} c{t}, b{t}, b{t}"
GREATEST = "unary.relu.{d} c{t}, b{t}"
SUM_WITH_FIRST = "binary.add.{d} c{t}, b{t}, a{t}"


@pytest.mark.parametrize(
    ("graph", "held"),
    [
        (chain(SCALED, SHIFTED), 0),
        (chain(SCALED, SQUARED), 1),  # b twice
        (chain(SCALED, GREATEST), 1),  # which compares b and chooses it
        (chain(SCALED, SUM_WITH_FIRST), 0),  # x is loaded twice
    ],
    ids=["a chain", "squared", "compared", "read later"],
)
def test_what_is_read_once_has_no_cell(graph: IGraph, held: int) -> None:
    """But for what is stored: one cell of every graph."""
    assert cells(graph) == held + 1


def test_what_is_rounded_at_each_step_has_cells() -> None:
    assert cells(chain(SCALED, SHIFTED, dtype="bf16")) > 1 + cells(chain(SCALED, SHIFTED))


@pytest.mark.parametrize(
    "made",
    [(SCALED, SHIFTED), (SCALED, SQUARED), (SCALED, GREATEST), (SCALED, SUM_WITH_FIRST)],
    ids=["a chain", "squared", "compared", "read later"],
)
def test_values_are_those_of_the_graph(made: tuple[str, ...]) -> None:
    check(chain(*made), [np.random.default_rng(0).standard_normal(COLS).astype(np.float32)])


def test_what_nothing_reads_is_not_made() -> None:
    """The code is that of the graph without it."""
    unread = chain(SCALED, SHIFTED, "unary.exp.{d} e{t}, a{t}", registers="abce")
    assert cells(unread) == cells(chain(SCALED, SHIFTED)) == 1


def test_a_result_that_is_its_operand_is_read_first() -> None:
    """Both sums are of what was there before either was stored."""
    graph = parsed(
        f"x = iPointer(dram, fp32, {COLS}, inout)\no = iPointer(dram, fp32, {COLS}, out)\n"
        + "".join(f"{name} = iPointer(reg, fp32, {COLS})\n" for name in "abc"),
        f"""move.dram.reg.fp32 a{TILE}, x{TILE}
        unary.adds.fp32 b{TILE}, a{TILE} [1.0]
        move.reg.dram.fp32 x{TILE}, b{TILE}
        unary.muls.fp32 c{TILE}, a{TILE} [2.0]
        move.reg.dram.fp32 o{TILE}, c{TILE}""",
    )
    check(graph, [np.arange(COLS, dtype=np.float32)])
