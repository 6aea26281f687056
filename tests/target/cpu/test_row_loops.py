# SPDX-License-Identifier: Apache-2.0
"""Passes over rows whose length a size decides, each over all rows, and what later ones read of a row."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import tvm
from tvm import tirx
from uir_tvm.igraph import HardwareModel
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.target.cpu import row_loops as row_loops_module
from uir_tvm.target.cpu.lower import lower

from .support import HOST, llvm_target

ROWS, LONGEST = 4, 64


def kernel(body: str, open_rows: bool = True, hw: HardwareModel = HOST) -> tirx.PrimFunc:
    """Rows of x into z by way of tiles a to e, and of m, l, t and k, which have one number a row."""
    cols = "; cols :s" if open_rows else ""
    length = "s" if open_rows else str(LONGEST)
    names = {
        "TILE": f"({ROWS},{LONGEST}); ({LONGEST},1){cols}",
        "ROW": f"({ROWS},{LONGEST}); ({length},1){cols}",
        "ONE": f"({ROWS},1); (1,1)",
    }
    for name, piece in names.items():
        body = body.replace(name, piece)
    sizes = f"size s = [1, {LONGEST}]\n" if open_rows else ""
    graph = parse_igraph(
        f"igraph kernel on host parallel (1, 1) {{\n{sizes}"
        f"x = iPointer(dram, fp32, ({ROWS}, {length}), in)\n"
        f"z = iPointer(dram, fp32, ({ROWS}, {length}), out)\n"
        + "".join(f"{name} = iPointer(reg, fp32, {ROWS * LONGEST})\n" for name in "abcde")
        + "".join(f"{name} = iPointer(reg, fp32, {ROWS})\n" for name in "mlt")
        + f"k = iPointer(reg, bool, {ROWS})\nh = iPointer(reg, bool, {ROWS * LONGEST})\n{body}\n}}",
        hw,
    )
    shape = (ROWS, tirx.Var("s", "int64") if open_rows else LONGEST)
    params = [tirx.decl_buffer(shape, "float32", name=name) for name in "xz"]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return lower(graph, empty.with_attr({"global_symbol": "kernel", "tirx.noalias": True}))


SOFTMAX = """move.dram.reg.fp32 a[0; TILE], x[0; ROW]
reduce.max.row.unit.fp32 m[0; ONE], a[0; TILE]
broadcast.row.unit.fp32 b[0; TILE], m[0; ONE]
binary.sub.fp32 c[0; TILE], a[0; TILE], b[0; TILE]
unary.exp.fp32 d[0; TILE], c[0; TILE]
reduce.add.row.unit.fp32 t[0; ONE], d[0; TILE]
broadcast.row.unit.fp32 b[0; TILE], t[0; ONE]
binary.div.fp32 e[0; TILE], d[0; TILE], b[0; TILE]
move.reg.dram.fp32 z[0; ROW], e[0; TILE]"""
#: The maximum taken off, but of rows that are one number: a number and a bool of each row are read later.
SPREAD = """move.dram.reg.fp32 a[0; TILE], x[0; ROW]
reduce.max.row.unit.fp32 m[0; ONE], a[0; TILE]
reduce.min.row.unit.fp32 l[0; ONE], a[0; TILE]
compare.lt.fp32 k[0; ONE], l[0; ONE], m[0; ONE]
broadcast.row.unit.fp32 b[0; TILE], m[0; ONE]
broadcast.row.unit.bool h[0; TILE], k[0; ONE]
binary.sub.fp32 c[0; TILE], a[0; TILE], b[0; TILE]
select.fp32 d[0; TILE], h[0; TILE], c[0; TILE], b[0; TILE]
move.reg.dram.fp32 z[0; ROW], d[0; TILE]"""


def with_first_cache(size: int) -> HardwareModel:
    """This machine with a first cache of so many bytes."""
    figures = {**HOST.figures, "l1_bytes": size}
    return HardwareModel("host", "cpu", 2, 1, HOST.reg_bytes, 0, HOST.vector_bytes, figures)


def with_passes(columns: int, last_cache: int = 1 << 20) -> HardwareModel:
    """This machine with passes over rows of so many columns."""
    figures = {**HOST.figures, "pass_columns": columns, "l3_bytes": last_cache}
    return HardwareModel("host", "cpu", 2, 1, HOST.reg_bytes, 0, HOST.vector_bytes, figures)


def row_loops(func: tirx.PrimFunc) -> int:
    """How many loops over the rows of a tile there are."""
    return len(re.findall(rf"for r in range\(T\.int64\({ROWS}\)\)|for r in range\({ROWS}\)", str(func)))


def held(func: tirx.PrimFunc) -> set[str]:
    """The buffers that have a number for each row."""
    return set(re.findall(r"(row_values\w*) = T\.alloc_buffer", str(func)))


def compiled(func: tirx.PrimFunc) -> Callable[[np.ndarray], np.ndarray]:
    """What a kernel makes of rows."""
    code = tvm.compile(tvm.IRModule({"kernel": func}), target=llvm_target())["kernel"]

    def run(x: np.ndarray) -> np.ndarray:
        z = tvm.runtime.tensor(np.zeros_like(x))
        code(tvm.runtime.tensor(x), z)
        return z.numpy()

    return run


def softmax(x: np.ndarray) -> np.ndarray:
    """By NumPy, in float64."""
    wide = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    return wide / wide.sum(1, keepdims=True)


def test_passes_over_rows_of_open_length_walk_all_rows_each() -> None:
    """Maximum, exponentials, division: three loops, and a maximum and a sum of every row between them."""
    func = kernel(SOFTMAX)
    assert (row_loops(func), len(held(func))) == (3, 2)


def test_what_makes_one_number_a_row_joins_the_pass_before() -> None:
    """The comparison of two numbers of a row has no loop of its own."""
    func = kernel(SPREAD)
    assert (row_loops(func), len(held(func))) == (2, 3)


def test_short_rows_of_known_length_have_passes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Longer ones are a straight line that keeps a processor busy, one row after another."""
    assert row_loops(kernel(SOFTMAX, open_rows=False)) == 3
    monkeypatch.setattr(row_loops_module, "SHORT_ROW", LONGEST - 1)
    assert row_loops(kernel(SOFTMAX, open_rows=False, hw=with_passes(0))) == 1


#: Divisions are slow, but one instruction.
CHEAP = SOFTMAX.replace("unary.exp", "unary.neg")
#: A softmax of what is multiplied by another operand.
SCALED = SOFTMAX.replace("m[0; ONE], a", "m[0; ONE], e").replace("c[0; TILE], a", "c[0; TILE], e")
SCALED = SCALED.replace("reduce.max", "binary.mul.fp32 e[0; TILE], a[0; TILE], z[0; ROW]\nreduce.max", 1)


@pytest.mark.parametrize(
    ("body", "columns", "last_cache", "apart"),
    [
        (SOFTMAX, LONGEST, 1 << 20, True),
        (SOFTMAX, LONGEST - 1, 1 << 20, False),
        (SOFTMAX, LONGEST, 4 * ROWS * LONGEST - 1, False),  # comes from memory
        (SCALED, LONGEST, 1 << 20, False),  # two operands
        (CHEAP, LONGEST, 1 << 20, False),  # waits for next to nothing
    ],
    ids=["exponentials", "longer", "memory", "two operands", "cheap"],
)
def test_passes_of_longer_rows(
    monkeypatch: pytest.MonkeyPatch, body: str, columns: int, last_cache: int, apart: bool
) -> None:
    """Where a processor is known to be faster so."""
    monkeypatch.setattr(row_loops_module, "SHORT_ROW", LONGEST - 1)
    found, usual = (
        row_loops(kernel(body, open_rows=False, hw=with_passes(most, last_cache))) for most in (columns, 0)
    )
    assert (found == 3 * usual) == apart and (found == usual) != apart


@pytest.mark.parametrize("open_rows", [True, False])
def test_rows_beyond_the_first_cache_go_one_by_one(open_rows: bool) -> None:
    """Each pass would find its rows in a cache further away."""
    assert row_loops(kernel(SOFTMAX, open_rows, with_first_cache(4 * ROWS * LONGEST))) == 1


@pytest.mark.parametrize("name", ["softmax", "spread"])
def test_rows_of_all_lengths(name: str) -> None:
    """Shorter than a vector, of whole vectors, and in between; a NaN stays in its row."""
    run = compiled(kernel(SOFTMAX if name == "softmax" else SPREAD))
    rng = np.random.default_rng(0)
    for s in (1, 3, 7, 8, 9, 31, 32, 33, 37, 63, 64):
        x = rng.standard_normal((ROWS, s)).astype("float32")
        x[1, :] = 2.5
        x[2, s // 2] = np.nan
        z = run(x)
        if name == "softmax":
            np.testing.assert_allclose(z, softmax(x), rtol=1e-6, equal_nan=True)
        else:
            most, least = x.max(1, keepdims=True), x.min(1, keepdims=True)
            rows = [0, 1, 3]
            want = np.where(least < most, x - most, most)
            np.testing.assert_array_equal(z[rows], want[rows])
            assert np.isnan(z[2]).all()


def test_loops_of_their_own_change_no_bit() -> None:
    """The same sums in the same order, whichever loop over rows they stand in."""
    apart, together = compiled(kernel(SOFTMAX)), compiled(kernel(SOFTMAX, hw=with_first_cache(0)))
    for s in (5, 37, 64):
        x = np.random.default_rng(s).standard_normal((ROWS, s)).astype("float32")
        np.testing.assert_array_equal(apart(x), together(x))
