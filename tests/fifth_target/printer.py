# SPDX-License-Identifier: Apache-2.0
"""iGraph to plain C: one function that runs all units in lockstep, iOp by iOp.

Every unit has memory of its own, and every group too, of which the pass `allocate` gives out the bytes::

    unary.exp.fp32 u[0; (1,32); (32,1)], t[0; (1,32); (32,1)]       with u at 128, t at 0

becomes a loop over the units, in which the target's elements are computed to `made` before any is stored (so
that a target may lie where its sources do)::

    for (int64_t pid = 0; pid < UNITS; ++pid) {
      const int64_t r0 = 0, r1 = 1, c0 = 0, c1 = 32;
      for (r ..) for (c ..) { const float x = ((float*)(reg + pid * 256 + 0))[c + 32 * r]; made[n++] = ..; }
      for (r ..) for (c ..) ((float*)(reg + pid * 256 + 128))[c + 32 * r] = made[n++];
    }
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, Loop
from uir_tvm.igraph.dtypes import dtype_of
from uir_tvm.igraph.iops import spec_of
from uir_tvm.igraph.iops_reads import gathers_rows, scatters_rows
from uir_tvm.igraph.iops_scalar import REDUCE
from uir_tvm.verify.addresses import ADDRESSES, PEAK

from .functions import FUNCTIONS, PRELUDE

#: How an element is stored, and the type in which is computed with it.
STORED = {"fp64": "double", "fp32": "float", "fp16": "fp16", "bf16": "bf16", "bool": "uint8_t"}
COMPUTED = {"fp64": "double", "fp32": "float", "fp16": "float", "bf16": "float", "bool": "uint8_t"}
_ROUND = {None: "trunc", "trunc": "trunc", "floor": "floor", "ceil": "ceil", "rint": "rint", "round": "round"}


def _integer(dtype: str) -> str:
    row = dtype_of(dtype)
    return f"{row.kind}{8 * row.bytes}_t"


def stored(dtype: str) -> str:
    """The C type of an element in memory; a CodegenError says which there is none for."""
    if dtype.startswith("fp8"):
        raise CodegenError(f"C has no fp8 ({dtype}).", need="a wider float", remedy="compute in fp16")
    return STORED.get(dtype) or _integer(dtype)


def computed(dtype: str) -> str:
    """The C type of an element that is computed with."""
    return COMPUTED.get(dtype) or _integer(dtype)


def constant(value: float, dtype: str) -> str:
    """A number of a dtype, rounded as it is stored."""
    row = dtype_of(dtype)
    number = np.asarray(value).astype(row.numpy).astype(row.compute)[()]
    if row.kind != "float":
        return f"(({computed(dtype)}){int(number)}LL)" if number != -(2**63) else "INT64_MIN"
    if not math.isfinite(number):
        return "NAN" if number != number else "INFINITY" if number > 0 else "-INFINITY"
    return f"(({computed(dtype)}){float(number).hex()})"


def affine(value: Any) -> str:
    """A quasi-affine expression in C, whose `/` and `%` round down."""

    def walk(node: ast.expr) -> str:
        if isinstance(node, ast.BinOp):
            a, b = walk(node.left), walk(node.right)
            if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
                return f"{'floor_mod' if isinstance(node.op, ast.Mod) else 'floor_div'}({a}, {b})"
            return f"({a} {({ast.Add: '+', ast.Sub: '-', ast.Mult: '*'})[type(node.op)]} {b})"
        if isinstance(node, ast.UnaryOp):
            return f"(-{walk(node.operand)})"
        if isinstance(node, ast.Name):
            return "pid" if node.id == "pid" else f"loop_{node.id}"
        return str(ast.literal_eval(node))

    return walk(ast.parse(str(value), mode="eval").body)


@attrs.define
class Printer:
    """Lines of one function."""

    graph: IGraph
    lines: list[str] = attrs.field(factory=list)

    def say(self, *lines: str) -> None:
        self.lines += lines

    def base(self, pointer: IPointer) -> str:
        """The first element of a pointer, in the unit or group of pid."""
        if pointer.level == "dram":
            return f"(({stored(pointer.dtype)}*)dram_{pointer.name})"
        address, peak = self.graph.attrs[ADDRESSES][pointer.name], self.graph.attrs[PEAK][pointer.level]
        owner = "pid" if pointer.level == "reg" else f"(pid / {self.graph.num_units})"
        return f"(({stored(pointer.dtype)}*)({pointer.level} + {owner} * {peak} + {address}))"

    def element(self, piece: ISlice, row: str = "r", col: str = "c") -> str:
        """An element of a slice as it is stored."""
        place = f"{affine(piece.offset)} + {row} * {piece.row_stride} + {col} * {piece.col_stride}"
        return f"{self.base(piece.pointer)}[{place}]"

    def value(self, piece: ISlice, row: str = "r", col: str = "c") -> str:
        """An element of a slice to compute with."""
        dtype = str(piece.pointer.dtype)
        read = self.element(piece, row, col)
        return f"load_bf16({read})" if dtype == "bf16" else f"(({computed(dtype)}){read})"

    def store(self, piece: ISlice, value: str, row: str = "r", col: str = "c") -> str:
        dtype = str(piece.pointer.dtype)
        if dtype == "bool":
            value = f"({value}) != 0"
        made = f"store_bf16({value})" if dtype == "bf16" else f"({stored(dtype)})({value})"
        return f"{self.element(piece, row, col)} = {made};"

    def box(self, piece: ISlice, name: str = "") -> None:
        """The valid box of a slice as constants r0, r1, c0, c1 with a prefix."""
        for axis, limit, (low, high) in (
            ("r", piece.rows, piece.valid[:2]),
            ("c", piece.cols, piece.valid[2:]),
        ):
            begin = "0" if low is None else f"clamp({affine(low)}, 0, {limit})"
            end = str(limit) if high is None else f"clamp({affine(high)}, 0, {limit})"
            self.say(f"const int64_t {name}{axis}0 = {begin}, {name}{axis}1 = {end};")

    def body(self, nodes: Any) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                name = f"loop_{node.var}"
                self.say(f"for (int64_t {name} = 0; {name} < {node.extent}; ++{name}) {{")
                self.body(node.body)
                self.say("}")
            elif spec_of(node).touches:
                stored(str(node.dtype))
                self.iop(node)

    def iop(self, iop: IOp) -> None:
        if iop.attrs.get("scope") == "group":
            self.group(iop)
            return
        self.say(f"for (int64_t pid = 0; pid < {self.graph.num_parallel}; ++pid) {{  // {iop.op}")
        if iop.op == "scatter":
            self.scatter(iop)
        else:
            self.box(iop.target)
            VALUES[iop.op](self, iop)
        self.say("}")

    def over(self, statements: Callable[[], None], box: str = "") -> None:
        """A statement for every element of a box."""
        rows, cols = (f"for (int64_t {x} = {box}{x}0; {x} < {box}{x}1; ++{x})" for x in "rc")
        self.say(f"{rows} {cols} {{")
        statements()
        self.say("}")

    def elements(self, iop: IOp, value: Callable[[], str]) -> None:
        """Compute every element of the target's box, then store all."""
        kind = computed(str(iop.target.pointer.dtype))
        self.say(f"{kind}* made = scratch; int64_t n = 0;")
        self.over(lambda: self.say(f"made[n++] = ({kind})({value()});"))
        self.say("n = 0;")
        self.over(lambda: self.say(self.store(iop.target, "made[n++]")))

    def fold(self, iop: IOp, name: str, value: str, more: str) -> None:
        """One step of a reduction into acc."""
        kind = dtype_of(iop.dtype).kind
        step = FUNCTIONS[kind][name]
        self.say(
            f"{more} {{ const {computed(iop.dtype)} x = acc, y = {value};"
            f" acc = ({computed(iop.dtype)})({step}); }}"
        )

    def reduced(self, iop: IOp) -> str:
        """The reduction of the row or column of an element (r, c) of the target: declares and folds acc."""
        source, by_row = iop.sources[0], iop.attrs["axis"] == "row"
        self.say(f"{computed(iop.dtype)} acc = {constant(REDUCE[iop.name].identity(iop.dtype), iop.dtype)};")
        along = "for (int64_t k = {0}0; k < {0}1; ++k)".format("sc" if by_row else "sr")
        inside = "if (r >= sr0 && r < sr1)" if by_row else "if (c >= sc0 && c < sc1)"
        value = self.value(source, "r", "k") if by_row else self.value(source, "k", "c")
        self.fold(iop, iop.name, value, f"{inside} {along}")
        return "acc"

    def scatter(self, iop: IOp) -> None:
        source, index = iop.sources
        rows = scatters_rows(iop)
        self.box(iop.target)
        self.box(source, "s")

        def one() -> None:
            at, col = self.value(index, "r", "0" if rows else "c"), "c" if rows else "0"
            self.say(f"const int64_t at = {at};")
            self.say(f"if (at >= r0 && at < r1 && {col} >= c0 && {col} < c1)")
            self.say(self.store(iop.target, self.value(source), "at", col))

        self.over(one, "s")

    def group(self, iop: IOp) -> None:
        """Sets of units: the leader's total of all members' partials, or its value in every member."""
        size, total = int(iop.attrs["group_size"]), self.graph.num_parallel
        kind, source = computed(str(iop.dtype)), iop.sources[0]
        self.say(f"for (int64_t lead = 0; lead < {total}; lead += {size}) {{  // {iop.op} of a group")
        self.say(f"{kind}* made = scratch; int64_t n = 0;")
        if iop.op == "reduce":
            self.say("{ const int64_t pid = lead;")
            self.box(iop.target)

            def one() -> None:
                identity = constant(REDUCE[iop.name].identity(iop.dtype), iop.dtype)
                self.say(f"{kind} sum = {identity};")
                self.say(f"for (int64_t pid = lead; pid < lead + {size}; ++pid) {{")
                self.box(source, "s")
                self.say(f"const {kind} part = {self.rounded(iop, self.reduced(iop))};")
                self.say("acc = sum;")
                self.fold(iop, iop.name, "part", "")
                self.say("sum = acc; }", "made[n++] = sum;")

            self.over(one)
            self.say("n = 0;")
            self.over(lambda: self.say(self.store(iop.target, "made[n++]")))
            self.say("} }")
            return
        self.say("{ const int64_t pid = lead;")
        self.say(f"for (int64_t r = 0; r < {source.rows}; ++r) for (int64_t c = 0; c < {source.cols}; ++c)")
        self.say(f"made[n++] = {self.value(source)}; }}")
        self.say(f"for (int64_t pid = lead; pid < lead + {size}; ++pid) {{")
        self.box(iop.target)
        place = "r" if iop.attrs["axis"] == "row" else "c"
        self.over(lambda: self.say(self.store(iop.target, f"made[{place}]")))
        self.say("} }")

    def rounded(self, iop: IOp, value: str) -> str:
        """A value as it is after it was stored."""
        dtype = str(iop.dtype)
        if dtype == "bf16":
            return f"load_bf16(store_bf16({value}))"
        return f"({computed(dtype)})({stored(dtype)})({value})"


def _scalar(p: Printer, iop: IOp) -> None:
    kind = dtype_of(iop.dtype).kind
    expression = FUNCTIONS[kind][iop.name]
    params = iop.attrs.get("params", ())

    def value() -> str:
        for name, source in zip("xy", iop.sources, strict=False):
            p.say(f"const {computed(iop.dtype)} {name} = {p.value(source)};")
        for number in params:
            p.say(f"const {computed(iop.dtype)} p = {constant(number, iop.dtype)};")
        return expression

    p.elements(iop, value)


def _plain(value: Callable[[Printer, IOp], str]) -> Callable[[Printer, IOp], None]:
    return lambda p, iop: p.elements(iop, lambda: value(p, iop))


def _move(p: Printer, iop: IOp) -> None:
    source = iop.sources[0]
    p.box(source, "s")
    inside = "r >= sr0 && r < sr1 && c >= sc0 && c < sc1"
    pad = f"!({inside}) ? {constant(iop.attrs['pad'], iop.dtype)} : " if "pad" in iop.attrs else ""
    p.elements(iop, lambda: pad + p.value(source))


def _reduce(p: Printer, iop: IOp) -> None:
    p.box(iop.sources[0], "s")
    p.elements(iop, lambda: p.reduced(iop))


def _gather(p: Printer, iop: IOp) -> None:
    table, index = iop.sources
    rows = gathers_rows(iop)
    p.box(table, "s")

    def value() -> str:
        p.say(f"const int64_t at = {p.value(index, 'r', '0' if rows else 'c')};")
        found = p.value(table, "at", "c" if rows else "0")
        return f"at >= sr0 && at < sr1 ? {found} : {constant(iop.attrs.get('pad', 0), iop.dtype)}"

    p.elements(iop, value)


def _contract(p: Printer, iop: IOp) -> None:
    a, b = iop.sources
    p.box(a, "s")
    kind = computed(iop.dtype)

    def value() -> str:
        p.say(f"{kind} acc = {p.value(iop.target) if iop.attrs.get('accumulate') else '0'};")
        product = f"({kind}){p.value(a, 'r', 'k')} * ({kind}){p.value(b, 'k', 'c')}"
        p.say(f"for (int64_t k = sc0; k < sc1; ++k) acc = ({kind})(acc + {product});")
        return "acc"

    p.elements(iop, value)


def _cast(p: Printer, iop: IOp) -> None:
    source, to, mode = dtype_of(iop.name), dtype_of(iop.dtype), iop.attrs.get("round")
    stored(iop.name)
    if source.kind == to.kind == "float" and to.bytes < source.bytes and mode not in (None, "rint"):
        raise CodegenError(
            "C rounds to the nearest only.", need="round = rint", remedy="round before the cast"
        )

    def value() -> str:
        read = p.value(iop.sources[0])
        if to.kind == "bool":
            return f"{read} != 0"
        if source.kind == "float" and to.kind != "float":
            limits = np.iinfo(to.numpy)
            low, high = constant(limits.min, iop.dtype), constant(limits.max, iop.dtype)
            p.say(f"const double x = {_ROUND[mode]}((double){read});")
            return f"SATURATE(x, {computed(iop.dtype)}, {low}, {high})"
        return read

    p.elements(iop, value)


def _iota(p: Printer, iop: IOp) -> None:
    base, rows, cols = iop.attrs.get("base", 0), iop.attrs.get("row_step", 0), iop.attrs.get("col_step", 1)
    p.elements(iop, lambda: f"{affine(base)} + r * {rows} + c * {cols}")


#: Class of iOps -> how the elements of its target are computed.
VALUES: dict[str, Callable[[Printer, IOp], None]] = {
    "move": _move,
    "unary": _scalar,
    "binary": _scalar,
    "compare": _scalar,
    "select": _plain(lambda p, i: "{} ? {} : {}".format(*map(p.value, i.sources))),
    "broadcast": _plain(
        lambda p, i: p.value(i.sources[0], *(("r", "0") if i.attrs["axis"] == "row" else ("0", "c")))
    ),
    "reduce": _reduce,
    "fill": _plain(lambda p, i: constant(i.attrs["value"], i.dtype)),
    "cast": _cast,
    "iota": _iota,
    "transpose": _plain(lambda p, i: p.value(i.sources[0], "c", "r")),
    "gather": _gather,
    "contract": _contract,
}


def print_c(graph: IGraph, name: str) -> dict[str, Any]:
    """The text of a graph with addresses, and how it is launched (as `uir_tvm.target.printer` says).

    Raises
    ------
    CodegenError
        fp8; casts to a narrower float that do not round to the nearest.
    """
    dram = [p for p in graph.pointers if p.level == "dram"]
    for pointer in graph.pointers:
        stored(str(pointer.dtype))
    p = Printer(graph)
    p.say(PRELUDE, f"void {name}_launch(uint32_t groups, void* stream, void* const* arguments) {{")
    p.say(*(f"void* const dram_{pointer.name} = arguments[{n}];" for n, pointer in enumerate(dram)))
    groups = graph.num_groups
    p.say(f"unsigned char* const reg = calloc({graph.num_parallel}, {graph.attrs[PEAK]['reg']} + 1);")
    p.say(f"unsigned char* const sram = calloc({groups}, {graph.attrs[PEAK].get('sram', 0)} + 1);")
    p.say(f"void* const scratch = malloc({8 * max(_sizes(graph), default=1)});")
    p.body(graph.body)
    p.say("free(reg); free(sram); free(scratch);", "}")
    launch = {"name": name, "grid": 1, "block": 1, "shared_bytes": 0, "cooperative": False}
    return {
        "source": "\n".join(p.lines) + "\n",
        "kernels": [{**launch, "params": [str(pointer.name) for pointer in dram]}],
        "workspace": [],
        "report": {"units": graph.num_parallel, "peak": dict(graph.attrs[PEAK].items())},
    }


def _sizes(graph: IGraph) -> Iterator[int]:
    return (piece.rows * piece.cols for iop, _ in graph.walk() for piece in iop.slices())
