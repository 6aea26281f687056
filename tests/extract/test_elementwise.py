# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions, scheduled and not, give what TVM's own lowering gives."""

from __future__ import annotations

import pytest
from tvm import te, tirx

from .compare import check
from .schedules import map_rows, prim

F32 = "float32"


def _chain(a, bias):
    return te.compute(a.shape, lambda i, j: te.tanh(a[i, j] + bias[j]) * 2.0 - a[i, j], "out")


@pytest.mark.parametrize(("units", "rows", "cols"), [(3, 4, None), (3, 4, 16), (1, 37, 7), (5, 1, 50)])
def test_chain_with_bias_and_ragged_tail(units, rows, cols):
    """Neither 37 nor 50 is a multiple of the tile: valid boxes carry both tails."""
    func = prim(_chain, ((37, 50), F32), ((50,), F32))
    graph, _ = check(func, map_rows(func, "out", units, rows, cols))
    assert graph.num_groups == units


def test_fused_rows():
    """A fused row loop: pid and serial loop number the rows of both dimensions."""
    func = prim(lambda a: te.compute(a.shape, lambda b, i, j: te.exp(a[b, i, j]), "out"), ((3, 7, 20), F32))
    check(func, map_rows(func, "out", 2, 4, fuse=2))


def test_fused_to_one_loop():
    """One loop over everything, cut in 1-D tiles whose last one is ragged; addresses keep no division."""
    func = prim(lambda a: te.compute(a.shape, lambda i, j: a[i, j] * 3.0, "out"), ((13, 11), F32))
    graph, _ = check(func, map_rows(func, "out", 2, 16, fuse=2))
    moves = [iop for iop, _ in graph.walk() if iop.op == "move"]
    assert all(t.kind == "var" for iop in moves for s in iop.slices() for t in s.offset.terms)


def test_unscheduled_tiles_fit_in_reg():
    """Without a schedule the tile is cut so that temporaries fit (checked by the capacity rule)."""
    func = prim(lambda a: te.compute(a.shape, lambda i: te.exp(a[i]) + 1.0, "out"), ((100_003,), F32))
    graph, _ = check(func)
    assert max(p.size for p in graph.pointers if p.level == "reg") <= 1024


@pytest.mark.parametrize(
    "chain",
    [
        ("float32", "float16", "float32"),
        ("int8", "int32", "float32", "int64"),
        ("bool", "float32"),
        ("int64", "bool", "int32"),
        ("uint8", "float16"),
        ("float32", "bfloat16"),
    ],
)
def test_cast_chains(chain):
    """Casts between the kinds of dtype, one iOp each."""

    def build(a):
        def value(i):
            out = a[i]
            for dtype in chain[1:]:
                out = out.astype(dtype)
            return out

        return te.compute(a.shape, value, "out")

    graph, _ = check(prim(build, ((33,), chain[0])))
    assert sum(iop.op in ("cast", "compare") for iop, _ in graph.walk()) == len(chain) - 1


def test_masks():
    """Comparisons, logic on bools, select, and a bool output."""

    def build(a, b, m):
        mask = te.compute(
            a.shape, lambda i, j: tirx.Or(tirx.And(a[i, j] < b[j], m[i]), tirx.Not(a[i, j] >= 0.5)), "mask"
        )
        out = te.compute(a.shape, lambda i, j: tirx.Select(mask[i, j], a[i, j], 0.0 - b[j]), "out")
        return [mask, out]

    check(prim(build, ((6, 9), F32), ((9,), F32), ((6,), "bool")))


def test_integer_arithmetic():
    """Integer division and remainder in both roundings, shifts and bit operations, minimum and maximum."""

    def build(a, b):
        def value(i):
            x, y = a[i] - 2, b[i] + 1
            parts = [
                tirx.floordiv(x, y), tirx.floormod(x, y), tirx.truncdiv(x, y), tirx.truncmod(x, y),
                tirx.floordiv(x, 3), tirx.floormod(x, 3), x << 2, x >> 1, x & y, x | y, x ^ y,
                tirx.min(x, 1), tirx.max(y, x),
            ]  # fmt: skip
            total = parts[0]
            for k, part in enumerate(parts[1:]):
                total = total * 3 + part * (k + 1)
            return total

        return te.compute(a.shape, value, "out")

    check(prim(build, ((40,), "int32"), ((40,), "int32")))


def test_iteration_variables_as_values():
    """Indices as data: iota, also where a merged or divided index is asked for."""

    def build(a):
        return te.compute(
            a.shape, lambda i, j: a[i, j] + (i * 10 + j).astype(F32) + tirx.floormod(j, 3).astype(F32), "out"
        )

    graph, _ = check(prim(build, ((5, 12), F32)))
    assert any(iop.op == "iota" for iop, _ in graph.walk())


def test_scalar_forms():
    """Immediate operands take the scalar forms, on either side; no constant is filled."""

    def build(a):
        return te.compute(
            a.shape,
            lambda i: te.power(tirx.max(1.0 - a[i] * a[i], 0.25) + 2.0 / (a[i] * a[i] + 1.0), 2.0) / 3.0,
            "out",
        )

    graph, _ = check(prim(build, ((30,), F32)))
    names = {iop.name for iop, _ in graph.walk() if iop.op == "unary"}
    assert {"rsubs", "maxs", "rdivs", "adds", "pows", "divs"} <= names
    assert not any(iop.op == "fill" for iop, _ in graph.walk())


def test_one_move_for_one_load():
    """A value that is used three times is loaded once."""
    func = prim(lambda a: te.compute(a.shape, lambda i: a[i] * a[i] + te.exp(a[i]), "out"), ((16,), F32))
    graph, _ = check(func)
    assert sum(iop.op == "move" for iop, _ in graph.walk()) == 2


def test_rank_zero():
    """A scalar is a 1 x 1 tile."""
    check(prim(lambda a: te.compute((), lambda: a[()] * 2.0, "out"), ((), F32)))
