# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of an iGraph's text is one iOp)
"""Contractions that make zeros, or scale their sums, by themselves: found where nothing is between, and equal."""

from __future__ import annotations

from typing import Any

import pytest
from uir_tvm.igraph import IGraph, Loop
from uir_tvm.target.cpu.begin_contract import begun
from uir_tvm.target.cpu.read_through import read_through

from tests.igraph.strategies import random_inputs

from .support import check, parsed

POINTERS = """x = iPointer(dram, fp32, 480, in)
y = iPointer(dram, fp32, 640, in)
z = iPointer(dram, fp32, 1152, in)
t = iPointer(dram, fp32, 384, out)
o = iPointer(reg, fp32, 384)
f = iPointer(reg, fp32, 384)
g = iPointer(reg, fp32, 32)"""
TILE = "(12,32); (32,1)"
SUMS = f"o[0; {TILE}]"
LOADED = f"move.dram.reg.fp32 {SUMS}, z[0; {TILE}]"
FACTORS = f"move.dram.reg.fp32 f[0; {TILE}], z[384; {TILE}]"
SCALED = f"binary.mul.fp32 {SUMS}, {SUMS}, f[0; {TILE}]"
CLEARED = f"fill.fp32 {SUMS} [0.0]"
PRODUCT = f"contract.fp32 {SUMS}, x[160*i; (12,8); (8,1)], y[0; (8,32); (32,1)] [accumulate=true]"
STORED = f"move.reg.dram.fp32 t[0; {TILE}], {SUMS}"


def graph_of(*lines: str) -> IGraph:
    """A loop of two rounds, the first lines before it."""
    before, inside = lines[:2], "\n".join(lines[2:])
    return parsed(POINTERS, "\n".join([*before, f"for i in 2 {{\n{inside}\n}}", STORED]), 1)


def ops(body: Any) -> list[tuple[str, int]]:
    """The iOps of the loop, each with how many sources it has."""
    (inside,) = (node for node in body if isinstance(node, Loop))
    return [(iop.op, len(iop.sources)) for iop in inside.body]


def test_zeros_are_made_in_registers() -> None:
    graph = graph_of(LOADED, FACTORS, CLEARED, PRODUCT)
    assert ops(begun(graph.body)) == [("contract", 2)]
    check(graph, random_inputs(graph), 1e-5, 1e-5)


@pytest.mark.parametrize("first", ["the sums", "the factor"])
def test_sums_are_scaled_where_they_are_loaded(first: str) -> None:
    """Twelve rows are two blocks; 32 columns a panel and more."""
    a, b = (SUMS, f"f[0; {TILE}]") if first == "the sums" else (f"f[0; {TILE}]", SUMS)
    graph = graph_of(LOADED, FACTORS, f"binary.mul.fp32 {SUMS}, {a}, {b}", PRODUCT)
    assert ops(begun(graph.body)) == [("contract", 3)]
    check(graph, random_inputs(graph), 1e-5, 1e-5)


def test_one_factor_for_a_column() -> None:
    """As the running maxima of attention scale sums: what a broadcast repeats is read in its place."""
    few = "move.dram.reg.fp32 g[0; (1,32); (32,1)], z[500; (1,32); (32,1)]"
    spread = f"broadcast.col.unit.fp32 f[0; {TILE}], g[0; (1,32); (32,1)]"
    graph = graph_of(LOADED, few, spread, SCALED, PRODUCT)
    assert ops(begun(read_through(graph).body)) == [("contract", 3)]
    check(graph, random_inputs(graph), 1e-5, 1e-5)


APART = {
    "no zero": (f"fill.fp32 {SUMS} [1.0]", PRODUCT),
    "the zero below": (f"fill.fp32 {SUMS} [-0.0]", PRODUCT),
    "a part": ("fill.fp32 o[0; (11,32); (32,1)] [0.0]", PRODUCT),
    "the factor changes": (SCALED, f"unary.neg.fp32 f[0; {TILE}], f[0; {TILE}]", PRODUCT),
    "sums change": (SCALED, f"unary.neg.fp32 {SUMS}, {SUMS}", PRODUCT),
    "they are stored": (SCALED, STORED, PRODUCT),
    "a square": (f"binary.mul.fp32 {SUMS}, {SUMS}, {SUMS}", PRODUCT),
    "no product": (SCALED.replace("mul", "sub"), PRODUCT),
    "another place": (SCALED.replace(f"{SUMS}, {SUMS}", f"{SUMS}, f[0; {TILE}]", 1), PRODUCT),
    "no sum": (SCALED, PRODUCT.replace("=true", "=false")),
    "dot products": (
        SCALED.replace("(12,32)", "(4,32)"),
        PRODUCT.replace("(12,32)", "(4,32)")
        .replace("(12,8)", "(4,8)")
        .replace("(8,32); (32,1)", "(8,32); (1,8)"),
    ),
}


@pytest.mark.parametrize("lines", APART.values(), ids=APART)
def test_what_stays_apart(lines: tuple[str, ...]) -> None:
    graph = graph_of(LOADED, FACTORS, *lines)
    assert begun(graph.body) == list(graph.body)
    check(graph, random_inputs(graph), 1e-5, 1e-5)
