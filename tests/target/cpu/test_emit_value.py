# SPDX-License-Identifier: Apache-2.0
"""Every scalar iOp as emitted equals the interpreter, for every kind of dtype it takes.

All functions of one class and dtype are outputs of one graph over a ragged strided tile, so that vectors,
narrower vectors and single elements are all emitted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from uir_tvm.igraph import IPointer, ISlice, make, var
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.igraph.iops import BINARY, COMPARE, UNARY
from uir_tvm.target.cpu.scalar_ops import needs_scalars

from .support import check, graph_of, parsed

ROWS, COLS, PITCH = 3, 45, 48
SIZE = ROWS * PITCH
DTYPE_OF_KIND = ("fp32", "fp16", "bf16", "fp64", "int32", "int8", "int64", "uint8", "uint32", "bool")
PARAMS = {"pows": [2.0], "leaky_relu": [0.125]}
#: Relative error per dtype: 4 ULP of vector functions and 1 of the rounding of narrow types.
TOLERANCE = {"fp32": 6e-7, "fp16": 2e-3, "bf16": 1.6e-2, "fp64": 1e-14}
#: Functions emitted through a narrower algorithm than their reference, relative to one.
ABSOLUTE = {"fp32": 1e-6, "fp16": 1e-3, "bf16": 8e-3, "fp64": 1e-14}


def _tile(pointer: IPointer) -> ISlice:
    return ISlice(pointer, 1, (ROWS, COLS), (PITCH, 1))


def _values(dtype: str, low: float, high: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if DTYPES[dtype].kind == "float":
        return rng.uniform(low, high, SIZE).astype(numpy_of(dtype))
    if dtype == "bool":
        return rng.integers(0, 2, SIZE).astype(bool)
    low = 0 if DTYPES[dtype].kind == "uint" else -9
    return rng.integers(int(low), 10, SIZE).astype(numpy_of(dtype))


def _domain(name: str) -> tuple[float, float]:
    """An interval on which the function is finite."""
    if name in ("log", "log2", "sqrt", "rsqrt", "pow", "log1p"):
        return 0.05, 9.0
    if name in ("asin", "acos", "atanh"):
        return -0.9, 0.9
    return (1.0, 4.0) if name == "acosh" else (-4.0, 4.0)


def _run(cases: Sequence[tuple[str, str]], make_iop: object, dtype: str, operands: int) -> None:
    """Compile one graph with an output per name and compare all of them."""
    pointers, body, inputs = [], [], []
    for k, (name, kind) in enumerate(cases):
        low, high = _domain(name)
        sources = []
        for n in range(operands):
            sources.append(IPointer(f"{name}_{n}", "dram", dtype, SIZE, "in"))
            inputs.append(_values(dtype, low, high, 7 * k + n))
        out = IPointer(f"{name}_out", "dram", kind, SIZE, "out")
        pointers += [*sources, out]
        body.append(make_iop(name, _tile(out), *(_tile(s) for s in sources)))  # type: ignore[operator]
    check(graph_of(pointers, body), inputs, TOLERANCE.get(dtype, 0), ABSOLUTE.get(dtype, 0))


def _names(table: dict, op: str, dtype: str, scalars: bool) -> list[tuple[str, str]]:
    kind = DTYPES[dtype].kind
    return [
        (name, "bool" if row.result == "bool" else dtype)
        for name, row in table.items()
        if kind in row.kinds and needs_scalars(op, name, dtype) == scalars
    ]


def _unary(name: str, t: ISlice, s: ISlice):
    params = PARAMS.get(name, [3.0] * UNARY[name].n_params)
    return make.unary(name, t, s, params)


@pytest.mark.parametrize("scalars", [False, True])
@pytest.mark.parametrize("dtype", DTYPE_OF_KIND)
def test_unary(dtype: str, scalars: bool) -> None:
    cases = _names(UNARY, "unary", dtype, scalars)
    if not cases:
        pytest.skip("no such function of this dtype")
    _run(cases, _unary, dtype, 1)


@pytest.mark.parametrize("scalars", [False, True])
@pytest.mark.parametrize("dtype", DTYPE_OF_KIND)
def test_binary(dtype: str, scalars: bool) -> None:
    cases = _names(BINARY, "binary", dtype, scalars)
    if DTYPES[dtype].kind != "float":
        cases = [case for case in cases if case[0] != "pow"]
    if not cases:
        pytest.skip("no such function of this dtype")
    _run(cases, make.binary, dtype, 2)


@pytest.mark.parametrize("dtype", DTYPE_OF_KIND)
def test_compare(dtype: str) -> None:
    _run([(name, "bool") for name in COMPARE], make.compare, dtype, 2)


#: (from, to)
CASTS = [
    *(("fp32", to) for to in ("fp16", "bf16", "fp64", "int32", "int8", "uint8", "bool")),
    *(("fp64", to) for to in ("fp32", "int64")),
    *(("int64", to) for to in ("fp32", "int32")),
    *(("int32", to) for to in ("fp32", "int64", "bool")),
    *(("bool", to) for to in ("fp32", "bf16", "int64", "int8", "uint8", "bool")),
    ("fp16", "fp32"),
    ("bf16", "fp32"),
    ("fp16", "bf16"),
    ("uint8", "fp32"),
]


def test_cast() -> None:
    """All pairs in one graph; values beyond the range of the target saturate."""
    pointers, body, inputs = [], [], []
    for k, (source, target) in enumerate(CASTS):
        s = IPointer(f"s{k}", "dram", source, SIZE, "in")
        t = IPointer(f"t{k}", "dram", target, SIZE, "out")
        pointers += [s, t]
        body.append(make.cast(_tile(t), _tile(s)))
        inputs.append(_values(source, -900.0, 900.0, k))
    check(graph_of(pointers, body), inputs, 0, 0)


@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "int64"])
def test_integers_that_do_not_fit_wrap_around(target: str) -> None:
    s = IPointer("s", "dram", "int32", SIZE, "in")
    t = IPointer("t", "dram", target, SIZE, "out")
    ends = [0, 1, -1, 127, 128, -129, 300, 2**15, 2**24 + 1, 2**31 - 1, -(2**31)]
    values = np.resize(np.array(ends, np.int32), SIZE)
    check(graph_of([s, t], [make.cast(_tile(t), _tile(s))]), [values], 0, 0)


@pytest.mark.parametrize("rounding", ["rint", "floor", "ceil", "trunc", "round"])
def test_cast_rounds(rounding: str) -> None:
    s, t = IPointer("s", "dram", "fp32", SIZE, "in"), IPointer("t", "dram", "int32", SIZE, "out")
    halves = (np.arange(SIZE) - SIZE // 2).astype(np.float32) / 2
    special = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 0.49999997], np.float32)
    halves[2 : 2 + len(special)] = special
    check(graph_of([s, t], [make.cast(_tile(t), _tile(s), rounding)]), [halves], 0, 0)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40], np.float32)


def test_not_a_number() -> None:
    """NaN goes through max, min, relu and sign, and is found by isnan, as in the interpreter."""
    a, b = (x.ravel() for x in np.meshgrid(np.tile(SPECIAL, 3), SPECIAL))
    n = a.size
    x, y = (IPointer(name, "dram", "fp32", n, "in") for name in "xy")
    pointers, body = [x, y], []

    def piece(p: IPointer) -> ISlice:
        return ISlice(p, 0, (1, n))

    for name in ("relu", "sign", "abs", "neg", "isnan", "isinf", "isfinite", "maxs", "mins"):
        kind = "bool" if UNARY[name].result == "bool" else "fp32"
        pointers.append(IPointer(name, "dram", kind, n, "out"))
        params = [0.5] * UNARY[name].n_params
        body.append(make.unary(name, piece(pointers[-1]), piece(x), params))
    for name in ("max", "min", "add"):
        pointers.append(IPointer(name, "dram", "fp32", n, "out"))
        body.append(make.binary(name, piece(pointers[-1]), piece(x), piece(y)))
    for name in COMPARE:
        pointers.append(IPointer(name, "dram", "bool", n, "out"))
        body.append(make.compare(name, piece(pointers[-1]), piece(x), piece(y)))
    check(graph_of(pointers, body), [a, b], 0, 0)


def test_division_by_zero_and_wide_shifts() -> None:
    """Integers over zero give zero, shifts by the width or more give zero or the sign: no trap, no poison."""
    a = np.array([7, -7, 0, 1, -1, 2**30, -(2**31), 5] * 8, np.int32)
    b = np.array([0, 0, 0, 31, 32, 33, -1, 3] * 8, np.int32)
    x, y = (IPointer(name, "dram", "int32", a.size, "in") for name in "xy")
    pointers, body = [x, y], []
    for name in ("floordiv", "mod", "truncdiv", "truncmod"):
        pointers.append(IPointer(name, "dram", "int32", a.size, "out"))
        body.append(make.binary(name, *(ISlice(p, 0, (1, a.size)) for p in (pointers[-1], x, y))))
    # the least integer over -1 overflows: leave that pair out
    b[a == -(2**31)] = 2
    check(graph_of(pointers, body), [a, b], 0, 0)
    shifts = np.abs(b) + np.arange(a.size, dtype=np.int32) % 40
    pointers, body = [x, y], []
    for name in ("shl", "shr"):
        pointers.append(IPointer(name, "dram", "int32", a.size, "out"))
        body.append(make.binary(name, *(ISlice(p, 0, (1, a.size)) for p in (pointers[-1], x, y))))
    check(graph_of(pointers, body), [a, shifts.astype(np.int32)], 0, 0)


def test_select_fill_and_iota() -> None:
    """Iota of every kind of dtype, from a base that depends on the unit."""
    m = IPointer("m", "dram", "bool", SIZE, "in")
    x, y = (IPointer(name, "dram", "fp32", SIZE, "in") for name in "xy")
    dtypes = ("fp32", "int32", "int64", "fp16", "uint8")
    outs = [IPointer(f"i_{d}", "dram", d, 2 * SIZE, "out") for d in dtypes]
    chosen, filled = IPointer("c", "dram", "fp32", SIZE, "out"), IPointer("f", "dram", "bf16", SIZE, "out")
    both = IPointer("b", "dram", "bool", SIZE, "out")
    pid = var("pid")
    shape, stride = (ROWS, COLS), (PITCH, 1)
    body = [make.iota(ISlice(p, pid * SIZE + 1, shape, stride), pid * 3 + 1, 50, 1) for p in outs]
    only_first = (None, ROWS * (1 - pid))
    t = [ISlice(p, 1, shape, stride, rows=only_first) for p in (chosen, m, x, y, filled, both)]
    body += [make.select(t[0], t[1], t[2], t[3]), make.fill(t[4], 1 / 3), make.select(t[5], t[1], t[1], t[1])]
    inputs = [_values("bool", 0, 1, 0), _values("fp32", -1, 1, 1), _values("fp32", -1, 1, 2)]
    check(graph_of([m, x, y, *outs, chosen, filled, both], body, 2), inputs, 0, 0)


def test_gather_of_one_column_that_may_not_exist() -> None:
    """A tile of one column is done element by element: its index is one number, not a vector of them."""
    graph = parsed(
        """
        x = iPointer(dram, fp32, 4, in)
        y = iPointer(dram, fp32, 8, out)
        i = iPointer(reg, int32, 1)
        t = iPointer(reg, fp32, 1)
        """,
        """
for k in 8 {
  iota.int32 i[0; (1,1); (1,1); cols :6 - k] [base=(k % 4), row_step=0, col_step=0]
  gather.fp32 t[0; (1,1); (1,1); cols :6 - k], x[0; (4,1); (1,1)], i[0; (1,1); (1,1); cols :6 - k] [pad=0]
  unary.abs.fp32 t[0; (1,1); (1,1); cols :6 - k], t[0; (1,1); (1,1); cols :6 - k]
  move.reg.dram.fp32 y[k; (1,1); (1,1); cols :6 - k], t[0; (1,1); (1,1); cols :6 - k]
}
        """,
    )
    check(graph, [np.array([1, -2, 3, -4], np.float32)], 0, 0)
