# SPDX-License-Identifier: Apache-2.0
"""Each iOp's rules refuse what they should, and each meaning agrees with NumPy written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from uir_tvm.errors import IGraphError
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, make, parse_igraph, var
from uir_tvm.igraph.dtypes import from_tvm
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.iops import IOPS, mnemonic, problems

from .test_text import EMPTY

RNG = np.random.default_rng(7)


def matrix(rows: int, cols: int, dtype: Any = np.float32) -> np.ndarray:
    """A random matrix."""
    return (RNG.standard_normal((rows, cols)) * 3).astype(dtype)


def piece(name: str, shape: tuple[int, int], dtype: str = "fp32", level: str = "reg", **valid: Any) -> ISlice:
    """A slice that is a whole pointer."""
    return ISlice(IPointer(name, level, dtype, shape[0] * shape[1]), 0, shape, **valid)


def apply(
    op: Callable[..., IOp], result: tuple[tuple[int, int], Any], *operands: np.ndarray, **more: Any
) -> np.ndarray:
    """Run ``op(t, *sources)`` on dram; ``result`` is shape and dtype of t, ``more`` changes t, s0, ..."""
    sources = [
        piece(f"s{k}", x.shape, from_tvm(x.dtype), "dram").replace(**more.get(f"s{k}", {}))
        for k, x in enumerate(operands)
    ]
    pointers = [IPointer(s.pointer.name, "dram", s.pointer.dtype, s.pointer.size, "in") for s in sources]
    sources = [s.replace(pointer=p) for s, p in zip(sources, pointers, strict=True)]
    shape, dtype = result
    out = IPointer("t", "dram", from_tvm(np.dtype(dtype)), shape[0] * shape[1], "out")
    target = ISlice(out, 0, shape, **more.get("t", {}))
    graph = IGraph("one", parse_igraph(EMPTY).hardware, 1, 1, [*pointers, out], [op(target, *sources)])
    (got,) = run(graph, *operands, allow_unwritten=True)
    return got.reshape(shape)


def test_every_iop_has_a_row_that_explains_it() -> None:
    for op, spec in IOPS.items():
        assert spec.op == op and spec.summary
        assert spec.meaning is not None or op in ("sync", "identity")


# --- meaning -------------------------------------------------------------------------------------


def test_move_copies_and_pads() -> None:
    x = matrix(4, 6)
    np.testing.assert_array_equal(apply(make.move, ((4, 6), np.float32), x), x)
    wanted = np.full((4, 6), -1, np.float32)
    wanted[1:3, 2:5] = x[1:3, 2:5]
    box = {"rows": (1, 3), "cols": (2, 5)}
    got = apply(lambda t, s: make.move(t, s, pad=-1), ((4, 6), np.float32), x, s0=box)
    np.testing.assert_array_equal(got, wanted)


def test_only_the_valid_box_of_the_target_is_written() -> None:
    x = matrix(4, 6)
    box = {"rows": (1, 3), "cols": (2, 9)}
    got = apply(lambda t, s: make.unary("neg", t, s), ((4, 6), np.float32), x, t=box)
    wanted = np.zeros((4, 6), np.float32)
    wanted[1:3, 2:] = -x[1:3, 2:]
    np.testing.assert_array_equal(got, wanted)


def test_binary_compare_and_select() -> None:
    a, b, m = matrix(3, 5), matrix(3, 5), matrix(3, 5) > 0
    got = apply(lambda t, x, y: make.binary("sub", t, x, y), ((3, 5), np.float32), a, b)
    np.testing.assert_array_equal(got, a - b)
    got = apply(lambda t, x, y: make.compare("le", t, x, y), ((3, 5), bool), a, b)
    np.testing.assert_array_equal(got, a <= b)
    np.testing.assert_array_equal(apply(make.select, ((3, 5), np.float32), m, a, b), np.where(m, a, b))


def test_broadcast() -> None:
    column, row = matrix(4, 1), matrix(1, 6)
    got = apply(lambda t, s: make.broadcast(t, s, "row"), ((4, 6), np.float32), column)
    np.testing.assert_array_equal(got, column.repeat(6, 1))
    got = apply(lambda t, s: make.broadcast(t, s, "col"), ((4, 6), np.float32), row)
    np.testing.assert_array_equal(got, row.repeat(4, 0))


@pytest.mark.parametrize("name", ["add", "mul", "max", "min"])
def test_reduce_covers_the_valid_box_and_nothing_gives_the_identity(name: str) -> None:
    x = matrix(4, 6)
    ufunc = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[name]
    shape, box = ((4, 1), np.float32), {"rows": (1, 3), "cols": (2, 5)}
    identity = {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[name]
    got = apply(lambda t, s: make.reduce(name, t, s, "row"), shape, x, s0=box)
    wanted = np.full((4, 1), identity)
    wanted[1:3, 0] = ufunc.reduce(x[1:3, 2:5], axis=1)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)  # the order of the sum
    got = apply(lambda t, s: make.reduce(name, t, s, "col"), ((1, 6), np.float32), x, s0={"cols": (2, 5)})
    wanted = np.full((1, 6), identity)
    wanted[0, 2:5] = ufunc.reduce(x[:, 2:5], axis=0)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    got = apply(lambda t, s: make.reduce(name, t, s, "row"), shape, x, s0={"cols": (3, 3)})
    np.testing.assert_array_equal(got, np.full((4, 1), identity))


def test_fill_and_iota() -> None:
    np.testing.assert_array_equal(
        apply(lambda t: make.fill(t, 2.5), ((2, 3), np.float32)), np.full((2, 3), 2.5)
    )
    got = apply(lambda t: make.iota(t, var("pid") + 7, 10, -1), ((2, 3), np.int64), t={"rows": (1, None)})
    np.testing.assert_array_equal(got, [[0, 0, 0], [17, 16, 15]])


def test_transpose() -> None:
    x = matrix(3, 5)
    np.testing.assert_array_equal(apply(make.transpose, ((5, 3), np.float32), x), x.T)


def test_gather_rows_and_elements_with_indices_outside() -> None:
    table, rows = matrix(7, 4), np.array([[6], [-1], [0], [7]], np.int32)
    got = apply(lambda t, s, i: make.gather(t, s, i, pad=9.0), ((4, 4), np.float32), table, rows)
    np.testing.assert_array_equal(got, np.stack([table[6], np.full(4, 9), table[0], np.full(4, 9)]))
    column, where = matrix(7, 1), np.array([[6, 0, 99], [2, 2, -5]], np.int64)
    got = apply(make.gather, ((2, 3), np.float32), column, where)
    np.testing.assert_array_equal(got, [[column[6, 0], column[0, 0], 0], [column[2, 0], column[2, 0], 0]])


def test_scatter_rows_and_elements_with_indices_outside() -> None:
    x, rows = matrix(3, 4), np.array([[5], [0], [6]], np.int64)
    wanted = np.zeros((6, 4), np.float32)
    wanted[5], wanted[0] = x[0], x[1]
    np.testing.assert_array_equal(apply(make.scatter, ((6, 4), np.float32), x, rows), wanted)
    where = np.array([[1, 1, -1, 3], [8, 0, 8, 8], [8, 8, 8, 8]], np.int32)
    got = apply(make.scatter, ((4, 1), np.float32), x, where)
    # the later of two writes to one place stays
    np.testing.assert_array_equal(got[:, 0], [x[1, 1], x[0, 1], 0, x[0, 3]])


def test_contract() -> None:
    a, b = matrix(3, 8), matrix(8, 5)
    np.testing.assert_allclose(apply(make.contract, ((3, 5), np.float32), a, b), a @ b, rtol=2e-6, atol=2e-6)
    got = apply(make.contract, ((3, 5), np.float32), a, b, s0={"cols": (None, 6)})
    np.testing.assert_allclose(got, a[:, :6] @ b[:6], rtol=2e-6, atol=2e-6)
    half = apply(
        make.contract, ((3, 5), np.float32), a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    )
    # bf16 operands have 8 bits; eight products of magnitude up to 81
    np.testing.assert_allclose(half, a @ b, rtol=0.05, atol=0.5)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (None, [-2, -1, 0, 1, 2]),
        ("rint", [-2, -2, 0, 2, 2]),
        ("floor", [-3, -2, 0, 1, 2]),
        ("ceil", [-2, -1, 1, 2, 3]),
        ("trunc", [-2, -1, 0, 1, 2]),
        ("round", [-3, -2, 1, 2, 3]),
    ],
)
def test_cast_to_integer(mode: str | None, wanted: list[int]) -> None:
    x = np.array([[-2.5, -1.5, 0.5, 1.5, 2.5]], np.float32)
    np.testing.assert_array_equal(apply(lambda t, s: make.cast(t, s, mode), ((1, 5), np.int32), x), [wanted])


def test_cast_out_of_range_saturates() -> None:
    x = np.array([[np.nan, np.inf, -np.inf, 3e9, -3e9, 300]], np.float32)
    big, small = np.iinfo(np.int32).max, np.iinfo(np.int32).min
    np.testing.assert_array_equal(apply(make.cast, ((1, 6), np.int32), x), [[0, big, small, big, small, 300]])
    np.testing.assert_array_equal(apply(make.cast, ((1, 6), np.uint8), x), [[0, 255, 0, 255, 0, 255]])


def test_cast_to_and_from_bool() -> None:
    x = np.array([[0.0, -0.0, 0.5, np.nan]], np.float32)
    np.testing.assert_array_equal(apply(make.cast, ((1, 4), bool), x), [[False, False, True, True]])
    np.testing.assert_array_equal(apply(make.cast, ((1, 2), np.float32), np.array([[True, False]])), [[1, 0]])


@pytest.mark.parametrize(
    "narrow", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn]
)
def test_cast_to_narrower_float_rounds_as_told(narrow: Any) -> None:
    x = matrix(8, 8)
    cast = {m: apply(lambda t, s, m=m: make.cast(t, s, m), (x.shape, narrow), x).astype(np.float32)
            for m in ("rint", "floor", "ceil", "trunc", "round")}  # fmt: skip
    assert (cast["floor"] <= x).all() and (cast["ceil"] >= x).all() and (cast["floor"] != cast["ceil"]).any()
    np.testing.assert_array_equal(cast["trunc"], np.where(x < 0, cast["ceil"], cast["floor"]))
    nearest = np.minimum(x - cast["floor"], cast["ceil"] - x)
    for mode in ("rint", "round"):
        np.testing.assert_array_equal(np.abs(cast[mode] - x), nearest)


# --- rules ---------------------------------------------------------------------------------------

T, COLUMN, ROW = piece("t", (4, 6)), piece("c", (4, 1)), piece("r", (1, 6))
HALF, MASK, INDEX = piece("h", (4, 6), "fp16"), piece("m", (4, 6), "bool"), piece("i", (4, 1), "int32")
GROUP = {"axis": "row", "scope": "group", "group_size": 4}
UNIT = {"axis": "row", "scope": "unit"}
SRAM = piece("b", (2, 4), level="sram")

#: (what makes the iOp, rule that it breaks, words of the message)
REFUSED: list[tuple[Callable[[], IOp], str, str]] = [
    (lambda: IOp("warp", "", "fp32", [T], [T]), "form", "no iOp"),
    (lambda: IOp("move", "", "fp32", [T], [T, T]), "form", "takes 1 source"),
    (lambda: IOp("move", "fast", "fp32", [T], [T]), "form", "takes no name"),
    (lambda: IOp("move", "", "fp99", [T], [T]), "form", "no dtype"),
    (lambda: IOp("move", "", "fp32", [T], [T], {"axis": "row"}), "form", "no attribute 'axis'"),
    (lambda: IOp("move", "", "fp32", [T], [T], {"hint": "fast"}), "form", "one of stream"),
    (lambda: IOp("fill", "", "fp32", [T], []), "form", "needs the attribute 'value'"),
    (lambda: IOp("fill", "", "fp32", [T], [], {"value": "1"}), "form", "kind number"),
    (lambda: IOp("identity", "", "fp32", [T], []), "form", "at least one source"),
    (lambda: IOp("cast", "", "fp32", [T], [T]), "form", "no dtype to cast from"),
    (lambda: IOp("unary", "exq", "fp32", [T], [T]), "form", "no 'exq'"),
    (lambda: IOp("unary", "muls", "fp32", [T], [T]), "form", "1 params, not 0"),
    (lambda: IOp("reduce", "add", "fp32", [COLUMN], [T], GROUP), "form", "needs 'buffer'"),
    (
        lambda: IOp("reduce", "add", "fp32", [COLUMN], [T], UNIT | {"group_size": 2}),
        "form", "takes no 'group_size'",
    ),
    (lambda: IOp("move", "", "fp32", [T], [HALF]), "dtype", "h is fp16"),
    (lambda: IOp("move", "", "fp16", [T], [HALF]), "dtype", "t is fp32"),
    (lambda: IOp("binary", "and", "fp32", [T], [T, T]), "dtype", "binary.and takes bool, int, uint"),
    (lambda: IOp("contract", "", "bool", [MASK], [MASK, MASK]), "dtype", "contract takes .* not bool"),
    (lambda: IOp("compare", "lt", "fp32", [T], [T, T]), "dtype", "needs bool"),
    (lambda: IOp("select", "", "fp32", [T], [T, T, T]), "dtype", "needs bool"),
    (lambda: IOp("unary", "isnan", "fp32", [T], [T]), "dtype", "needs bool"),
    (lambda: IOp("gather", "", "fp32", [T], [T, COLUMN]), "dtype", "must be an integer"),
    (lambda: IOp("contract", "", "fp16", [HALF], [T, T]), "dtype", "operands of one of fp16"),
    (lambda: IOp("unary", "exp", "fp32", [T], [COLUMN]), "shape", r"c \(4, 1\) must have the shape \(4, 6\)"),
    (lambda: IOp("transpose", "", "fp32", [T], [T]), "shape", r"\(6, 4\)"),
    (lambda: IOp("contract", "", "fp32", [T], [T, T]), "shape", r"\(M, K\) times \(K, N\)"),
    (lambda: IOp("gather", "", "fp32", [T], [COLUMN, INDEX]), "shape", "does not fill"),
    (
        lambda: IOp("gather", "", "fp32", [T], [T, piece("wide", (4, 6), "int32")]),
        "shape", r"wide \(4, 6\) does not fill",
    ),
    (
        lambda: IOp("scatter", "", "fp32", [T], [T, piece("wide", (4, 6), "int32")]),
        "shape", r"wide \(4, 6\) does not go",
    ),
    (lambda: IOp("scatter", "", "fp32", [COLUMN], [T, INDEX]), "shape", "does not go into"),
    (lambda: IOp("sync", "", "fp32", [T], [COLUMN], {"scope": "sram"}), "shape", "one pointer"),
    (lambda: IOp("identity", "", "fp32", [T], [T, T]), "shape", "24 elements, the sources 48"),
    (lambda: IOp("broadcast", "", "fp32", [T], [ROW], UNIT), "shape", r"\(4, 1\)"),
    (lambda: IOp("reduce", "add", "fp32", [ROW], [T], UNIT), "shape", r"\(4, 1\)"),
    (
        lambda: IOp("reduce", "add", "fp32", [COLUMN], [T], GROUP | {"buffer": SRAM}),
        "shape", "holds 8 elements, but 16",
    ),
    (
        lambda: IOp("broadcast", "", "fp32", [T], [COLUMN], GROUP | {"buffer": COLUMN}),
        "shape", "only sram",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("build", "rule", "message"), REFUSED, ids=[f"{r}: {m}" for _, r, m in REFUSED])
def test_broken_rules_are_named(build: Callable[[], IOp], rule: str, message: str) -> None:
    iop = build()
    assert [r for r, _ in problems(iop)][0] == rule
    with pytest.raises(IGraphError, match=message):
        make.checked(iop)


def test_mnemonics() -> None:
    assert mnemonic(make.cast(HALF, T)) == "cast.fp32.fp16"
    assert mnemonic(make.compare("lt", MASK, T, T)) == "compare.lt.fp32"
    assert mnemonic(make.sync(SRAM, SRAM, "sram")) == "sync.sram"
    assert mnemonic(make.broadcast(T, COLUMN, "row", "group", SRAM, 2)) == "broadcast.row.group.fp32"
    assert mnemonic(make.move(SRAM.replace(shape=(4, 6)), T)) == "move.reg.sram.fp32"
