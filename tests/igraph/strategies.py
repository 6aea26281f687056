# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for expressions, single iOps and whole iGraphs.

`printable_igraphs` covers every iOp and every kind of attribute, with slices that lie anywhere;
`runnable_igraphs` gives complete operators: in bounds, every output element written once, ragged
tails, loops, any hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from uir_tvm.igraph import Affine, HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.igraph.iops import BINARY, COMPARE, REDUCE, UNARY

NAMES = ("a", "b0", "T_add", "in", "for", "rows", "x.y", "odd name", 'q"uote')
#: Without subnormal fp64, which the JSON reader of tvm-ffi refuses.
NUMBERS = st.one_of(
    st.integers(-(2**62), 2**62),
    st.floats(allow_nan=False, allow_subnormal=False),
    st.sampled_from([float("inf"), float("nan"), -0.0]),
)
FLOATS = [n for n, d in DTYPES.items() if d.kind == "float"]


@st.composite
def affines(draw: Any, variables: tuple[str, ...] = ("pid", "i", "j.outer"), depth: int = 2) -> Affine:
    """A quasi-affine expression, nested up to ``depth`` divisions."""
    total = affine(draw(st.integers(-64, 64)))
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(("var", "floordiv", "mod") if depth else ("var",)))
        if kind == "var":
            atom = var(draw(st.sampled_from(variables)))
        else:
            inner, divisor = draw(affines(variables, depth - 1)), draw(st.integers(1, 12))
            atom = inner // divisor if kind == "floordiv" else inner % divisor
        total = total + atom * draw(st.integers(-9, 9))
    return total


@st.composite
def hardware_models(draw: Any) -> HardwareModel:
    """Any hardware model."""
    counts = [draw(st.integers(0, 2**40)) for _ in range(5)]
    figures = draw(st.dictionaries(st.sampled_from(NAMES), plain_values(), max_size=2))
    return HardwareModel(draw(st.sampled_from(("host", "a 100"))), "cpu", *counts, figures)  # type: ignore[call-arg]


def plain_values() -> st.SearchStrategy[Any]:
    """What attributes of graphs and loops hold."""
    leaf = st.one_of(NUMBERS, st.booleans(), st.none(), st.text(max_size=5))
    return st.one_of(
        leaf, st.lists(leaf, max_size=2), st.dictionaries(st.sampled_from(NAMES), leaf, max_size=2)
    )


class _Scope:
    """Draws slices, each of a pointer of its own."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.pointers: list[IPointer] = []

    def piece(self, dtype: str, shape: tuple[int, int], level: str | None = None) -> ISlice:
        draw = self.draw
        level = level or draw(st.sampled_from(("reg", "sram", "dram")))
        role = draw(st.sampled_from(("in", "out", "inout", "tmp"))) if level == "dram" else "tmp"
        name = f"{draw(st.sampled_from(NAMES))}{len(self.pointers)}"
        self.pointers.append(IPointer(name, level, dtype, draw(st.integers(0, 2**40)), role))
        bound = st.one_of(st.none(), affines())
        return ISlice(
            self.pointers[-1],
            draw(affines()),
            shape,
            draw(st.tuples(st.integers(-64, 64), st.integers(-64, 64))),
            rows=draw(st.tuples(bound, bound)),
            cols=draw(st.tuples(bound, bound)),
        )


def _dtype(draw: Any, kinds: frozenset[str]) -> str:
    return draw(st.sampled_from([n for n, d in DTYPES.items() if d.kind in kinds]))


def _named(draw: Any, table: Any) -> tuple[str, str]:
    name = draw(st.sampled_from(sorted(table)))
    return name, _dtype(draw, table[name].kinds)


def _group(draw: Any, new: _Scope, dtype: str, elements: int) -> dict[str, Any]:
    if draw(st.booleans()):
        return {}
    size = draw(st.sampled_from((1, 2, 4)))
    return {"scope": "group", "buffer": new.piece(dtype, (size, elements), "sram"), "group_size": size}


def _move(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    pad, align = draw(st.one_of(st.none(), NUMBERS)), draw(st.one_of(st.none(), st.integers(1, 512)))
    hint = draw(st.sampled_from((None, "stream")))
    return make.move(new.piece(d, s), new.piece(d, s), pad=pad, hint=hint, align=align)


def _sync(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    piece = new.piece(d, s)
    return make.sync(
        piece, piece.replace(offset=draw(affines())), draw(st.sampled_from(("reg", "sram", "dram")))
    )


def _unary(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    name, d = _named(draw, UNARY)
    result = "bool" if UNARY[name].result == "bool" else d
    params = [draw(NUMBERS) for _ in range(UNARY[name].n_params)]
    return make.unary(name, new.piece(result, s), new.piece(d, s), params)


def _binary(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    name, d = _named(draw, BINARY)
    return make.binary(name, new.piece(d, s), new.piece(d, s), new.piece(d, s))


def _compare(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    name, d = _named(draw, COMPARE)
    return make.compare(name, new.piece("bool", s), new.piece(d, s), new.piece(d, s))


def _broadcast(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    axis = draw(st.sampled_from(("row", "col")))
    source = (s[0], 1) if axis == "row" else (1, s[1])
    more = _group(draw, new, d, source[0] * source[1])
    return make.broadcast(new.piece(d, s), new.piece(d, source), axis, **more)


def _reduce(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    name, d = _named(draw, REDUCE)
    axis = draw(st.sampled_from(("row", "col")))
    target = (s[0], 1) if axis == "row" else (1, s[1])
    more = _group(draw, new, d, target[0] * target[1])
    return make.reduce(name, new.piece(d, target), new.piece(d, s), axis, **more)


def _identity(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    piece = new.piece(d, s)
    half = piece.replace(shape=(s[0], s[1]), offset=draw(affines()))
    return make.identity([piece, half], [half, piece])


def _fill(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    return make.fill(new.piece(d, s), draw(st.one_of(NUMBERS, st.booleans())))


def _cast(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    mode = draw(st.sampled_from((None, "rint", "floor", "ceil", "trunc", "round")))
    return make.cast(new.piece(d, s), new.piece(draw(st.sampled_from(sorted(DTYPES))), s), mode)


def _iota(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    step = st.integers(-(2**40), 2**40)
    return make.iota(new.piece("int64", s), draw(affines()), draw(step), draw(step))


def _gather(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    rows = draw(st.integers(0, 99))
    table, index = ((rows, s[1]), (s[0], 1)) if draw(st.booleans()) else ((rows, 1), s)
    pad = draw(st.one_of(st.none(), NUMBERS))
    return make.gather(new.piece(d, s), new.piece(d, table), new.piece("int32", index), pad)


def _scatter(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    rows = draw(st.integers(0, 99))
    target, index = ((rows, s[1]), (s[0], 1)) if draw(st.booleans()) else ((rows, 1), s)
    return make.scatter(new.piece(d, target), new.piece(d, s), new.piece("uint64", index))


def _contract(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    k = draw(st.integers(0, 99))
    factor = draw(st.sampled_from(("fp32", "fp16", "bf16")))
    a, b = new.piece(factor, (s[0], k)), new.piece(factor, (k, s[1]))
    return make.contract(new.piece("fp32", s), a, b, draw(st.booleans()))


def _select(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    return make.select(new.piece(d, s), new.piece("bool", s), new.piece(d, s), new.piece(d, s))


def _transpose(draw: Any, new: _Scope, d: str, s: tuple[int, int]) -> IOp:
    return make.transpose(new.piece(d, s), new.piece(d, (s[1], s[0])))


_MAKERS: tuple[Callable[[Any, _Scope, str, tuple[int, int]], IOp], ...] = (
    _move, _sync, _unary, _binary, _compare, _select, _broadcast, _reduce, _identity, _fill, _cast, _iota,
    _transpose, _gather, _scatter, _contract,
)  # fmt: skip


@st.composite
def printable_igraphs(draw: Any) -> IGraph:
    """A graph whose iOps keep the rules of the table, over slices that lie anywhere."""
    new = _Scope(draw)

    def body(depth: int) -> list[Any]:
        out: list[Any] = []
        for _ in range(draw(st.integers(0, 3))):
            if depth and draw(st.integers(0, 3)) == 0:
                attrs = draw(st.dictionaries(st.sampled_from(NAMES), plain_values(), max_size=2))
                name = draw(st.sampled_from(("i", "j.outer", "for", "in")))
                out.append(Loop(name, draw(st.integers(0, 9)), body(depth - 1), attrs))
            else:
                shape = draw(st.tuples(st.integers(0, 64), st.integers(0, 64)))
                maker = draw(st.sampled_from(_MAKERS))
                out.append(maker(draw, new, draw(st.sampled_from(sorted(DTYPES))), shape))
        return out

    tree = body(2)
    return IGraph(
        draw(st.sampled_from(NAMES)),
        draw(hardware_models()),
        draw(st.integers(1, 200)),
        draw(st.integers(1, 8)),
        new.pointers,
        tree,
        draw(st.dictionaries(st.sampled_from(NAMES), plain_values(), max_size=2)),
    )


#: Named functions whose values stay close between correct implementations, for any operands.
TAME_UNARY = (
    "adds",
    "subs",
    "muls",
    "maxs",
    "mins",
    "rsubs",
    "abs",
    "neg",
    "tanh",
    "sigmoid",
    "relu",
    "sin",
    "copy",
)
TAME_BINARY = ("add", "sub", "max", "min")


@st.composite
def runnable_igraphs(draw: Any, max_units: int = 4) -> IGraph:
    """A complete operator on fp32 matrices whose rows are dealt to units and loops in tiles.

    The last tiles are ragged: loads are padded or all slices carry the valid range.  Between load
    and store there is a chain of unary, binary, compare/select, broadcast of a reduction, and
    transposition there and back.
    """
    groups, loops = draw(st.integers(1, max_units)), draw(st.integers(1, 3))
    rows, cols = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    ragged = draw(st.integers(0, rows * groups * loops - 1))
    n = rows * groups * loops - ragged
    padded = draw(st.booleans())
    first = (var("pid") * loops + var("l")) * rows
    end = affine(n) - first
    bound: Any = (None, None) if padded or not ragged else (None, end)
    params = [IPointer(name, "dram", "fp32", n * cols, "in") for name in ("x", "y")]
    params.append(IPointer("o", "dram", "fp32", n * cols, "out"))
    regs: list[IPointer] = []

    def reg(dtype: str = "fp32", shape: tuple[int, int] = (rows, cols), valid: Any = bound) -> ISlice:
        regs.append(IPointer(f"r{len(regs)}", "reg", dtype, max(shape[0] * shape[1], 1)))
        return ISlice(regs[-1], 0, shape, rows=valid)

    def tile(pointer: IPointer) -> ISlice:
        return ISlice(pointer, first * cols, (rows, cols), rows=(None, end) if ragged else (None, None))

    body: list[IOp] = []
    live: list[ISlice] = []
    for param in params[:2]:
        live.append(reg())
        body.append(
            make.move(live[-1], tile(param), pad=draw(st.sampled_from((0.0, 1.5))) if padded else None)
        )

    def step() -> None:
        kind = draw(st.sampled_from(("unary", "binary", "select", "reduce", "transpose")))
        a, b = draw(st.sampled_from(live)), draw(st.sampled_from(live))
        t = a if draw(st.integers(0, 3)) == 0 else reg()
        if kind == "unary":
            name = draw(st.sampled_from(TAME_UNARY))
            values = st.sampled_from((-1.5, -0.25, 0.5, 2.0))
            body.append(make.unary(name, t, a, [draw(values) for _ in range(UNARY[name].n_params)]))
        elif kind == "binary":
            body.append(make.binary(draw(st.sampled_from(TAME_BINARY)), t, a, b))
        elif kind == "select":
            mask = reg("bool")
            # of max and min against a constant no difference of an ULP changes the branch taken
            zero = reg()
            body.extend(
                [make.fill(zero, 0.0), make.compare(draw(st.sampled_from(("lt", "ge"))), mask, a, zero)]
            )
            body.append(make.select(t, mask, a, b))
        elif kind == "reduce":
            column = reg(shape=(rows, 1))
            body.append(make.reduce(draw(st.sampled_from(("add", "max", "min"))), column, a, "row"))
            body.append(make.broadcast(t, column, "row"))
        else:
            turned = reg(shape=(cols, rows), valid=(None, None))
            turned = turned.replace(cols=bound)
            body.extend([make.transpose(turned, a), make.transpose(t, turned)])
        live.append(t)

    for _ in range(draw(st.integers(0, 6))):
        step()
    body.append(make.move(tile(params[2]), live[-1], hint=draw(st.sampled_from((None, "stream")))))
    model = HardwareModel("host", "cpu", groups, 1, 2**20, 0, 64, {})  # type: ignore[call-arg]
    return IGraph("random", model, groups, 1, [*params, *regs], [Loop("l", loops, body)])


def random_inputs(graph: IGraph, seed: int = 0) -> list[np.ndarray]:
    """Inputs for a graph: normal floats, small integers, random bools."""
    rng = np.random.default_rng(seed)
    out = []
    for p in graph.params:
        if p.role == "out":
            continue
        kind = DTYPES[p.dtype].kind
        values = (
            rng.standard_normal(p.size)
            if kind == "float"
            else rng.integers(0, 2 if kind == "bool" else 9, p.size)
        )
        out.append(values.astype(numpy_of(p.dtype)))
    return out
