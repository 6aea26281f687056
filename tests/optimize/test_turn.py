# SPDX-License-Identifier: Apache-2.0
"""Tiles that products alone read take the order of what they are loaded from; others keep theirs."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IGraph
from uir_tvm.optimize import turn

from .toy import applied, left_alone, toy

REGS = "".join(
    f"  {name} = iPointer(reg, fp32, {size})\n"
    for name, size in {"a": 64, "b": 128, "c": 32, "d": 256}.items()
)
ZEROS = """  fill.fp32 d[0; (1,256); (256,1)] [0.0]
  move.reg.dram.fp32 y[0; (1,256); (256,1)], d[0; (1,256); (256,1)]
"""
LEFT = "  move.dram.reg.fp32 a[0; (4,16); (16,1)], x[0; (4,16); (16,1)]\n"
LOAD = "  move.dram.reg.fp32 b[0; (16,8); (8,1)], x[64; (16,8); (1,16)]\n"
PRODUCT = "  contract.fp32 c[0; (4,8); (8,1)], a[0; (4,16); (16,1)], b[0; (16,8); (8,1)] [accumulate=false]\n"
STORE = "  move.reg.dram.fp32 y[0; (4,8); (8,1)], c[0; (4,8); (8,1)]\n"
REST = "  move.reg.dram.fp32 y[32; (1,128); (128,1)], b[0; (1,128); (128,1)]\n"


def graph(*lines: str) -> IGraph:
    """The lines, behind ones that give every element of the output a value."""
    return toy(REGS + "".join([ZEROS, *lines]))


def _strides(made: IGraph, name: str) -> set[tuple[int, ...]]:
    pieces = (piece for iop, _ in made.walk() for piece in iop.slices() if piece.pointer.name == name)
    return {tuple(map(int, piece.stride)) for piece in pieces}


def test_the_load_and_the_product_agree() -> None:
    made = applied(turn, graph(LEFT, LOAD, PRODUCT, STORE))
    assert _strides(made, "b") == {(1, 16)} and _strides(made, "a") == {(16, 1)}


def test_valid_boxes_stay() -> None:
    box = LOAD.replace("(8,1)]", "(8,1); cols :5]").replace("(1,16)]", "(1,16); cols :5]")
    narrow = PRODUCT.replace("c[0; (4,8); (8,1)]", "c[0; (4,8); (8,1); cols :5]").replace(
        "b[0; (16,8); (8,1)]", "b[0; (16,8); (8,1); cols :5]"
    )
    store = STORE.replace("(8,1)]", "(8,1); cols :5]")
    made = applied(turn, graph(LEFT, box, narrow, store))
    assert _strides(made, "b") == {(1, 16)}


def test_several_products_and_loads_of_one_tile() -> None:
    again = LOAD.replace("x[64;", "x[128;")
    made = applied(turn, graph(LEFT, LOAD, PRODUCT, STORE, again, PRODUCT, STORE.replace("y[0", "y[32")))
    assert _strides(made, "b") == {(1, 16)}


@pytest.mark.parametrize(
    "lines",
    [
        (LEFT, LOAD.replace("(1,16)", "(8,1)"), PRODUCT, STORE),
        (LEFT, LOAD, PRODUCT, STORE, REST),
        (LEFT, LOAD, LOAD.replace("(1,16)", "(8,1)"), PRODUCT, STORE),
        (LEFT, "  fill.fp32 b[0; (16,8); (8,1)] [0.0]\n", LOAD, PRODUCT, STORE),
    ],
    ids=["by rows already", "read by others", "loaded by rows too", "written by others"],
)
def test_left_alone(lines: tuple[str, ...]) -> None:
    left_alone(turn, graph(*lines))


def test_a_left_operand_stays() -> None:
    left = LEFT.replace("x[0; (4,16); (16,1)]", "x[0; (4,16); (1,4)]")
    rows = LOAD.replace("(1,16)", "(8,1)")
    left_alone(turn, graph(left, rows, PRODUCT, STORE))
