# SPDX-License-Identifier: Apache-2.0
"""Writes attention in one pass over the keys (`uir_tvm.schedules.attention.flash`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm.ir import TensorLoad
from uir_tvm.igraph.tir_sizes import sizes_of
from uir_tvm.schedule import make_tir as t
from uir_tvm.schedule.annotations import CONTRACT, GROUP, LOOP, PIPELINE, ROWS
from uir_tvm.schedule.blocks import collect
from uir_tvm.schedule.representative import is_open, most_of
from uir_tvm.schedule.wide_values import WIDE
from uir_tvm.schedules.attention.blocks import blocks_of_tiles, end_within
from uir_tvm.schedules.attention.diagonal import EXACT, last_key, places_in_floats
from uir_tvm.schedules.attention.parts import Formula, Parts
from uir_tvm.schedules.attention.tile import FlashTile
from uir_tvm.schedules.attention.work import is_ragged, most_steps, work_of


class FlashWriter:
    """Writes one function."""

    def __init__(self, func: tirx.PrimFunc, parts: Parts, tile: FlashTile) -> None:
        self.func, self.parts, self.tile = func, parts, tile
        self.buffers: list[Any] = []
        self.rows, self.keys = min(tile.rows, parts.usual.rows), min(tile.keys, parts.usual.keys)
        self.head, self.width = parts.usual.head, parts.usual.width
        self.blocks = most_steps(func, parts.keys, self.keys)
        self.beyond = last_key(parts.score) if tile.leaves_out else None
        walked = self._walked() if tile.ended else []
        if tile.ended and not end_within(walked, self.blocks):
            walked = []
            if not (tile.bounded and is_open(parts.rows + parts.keys) and tile.parts * tile.units == 1):
                self.beyond = None
        self.work = work_of(func, parts, tile, self.rows, walked)
        # a loop in which units meet ends where nothing of what they share is used after it
        if tile.staged and self.work.repeats:
            self.beyond = None
        self.score = parts.score
        if tile.float_places and 2 * self._farthest() < EXACT:
            self.score = attrs.evolve(parts.score, expr=places_in_floats(parts.score.expr))
        self.reached: Any | None = None
        #: Whether the last round of the walk may have no block.
        self.uneven = False

    def _walked(self) -> list[int]:
        """Blocks of every tile of rows where numbers say how many; none where they do not."""
        tile, rows = self.tile, self.parts.rows
        if not isinstance(self.beyond, tirx.IntImm) or is_open(rows) or tile.parts * tile.units > 1:
            return []
        return blocks_of_tiles(int(rows), self.rows, self.keys, int(self.beyond.value))

    def _farthest(self) -> int:
        """As far as places of rows and keys, and sizes that rules add to them, go."""
        sizes = sizes_of(self.func)
        named = collect(self.parts.score.expr, tvm.ir.Var)
        added = [int(size.high) for var, size in sizes.items() if any(var.same_as(node) for node in named)]
        places = [most_of(extent, self.func) for extent in (self.parts.rows, self.parts.keys)]
        return sum((*places, *added)) if min(places) >= 0 else EXACT

    def write(self) -> tirx.PrimFunc:
        """The whole function."""

        def tile(batch: list[Any], first_row: Any, last_row: Any) -> Any:
            self.batch, self.first_row, self.last_row = batch, first_row, last_row
            return self._tile()

        return t.function(self.func, self.work.loops(tile), self.buffers)

    def _buffer(self, name: str, shape: Sequence[int], dtype: str, scope: str = "local") -> Any:
        made = tirx.decl_buffer([t.index(extent) for extent in shape], dtype, name, scope=scope)
        self.buffers.append(made)
        return made

    # -- where things lie ---------------------------------------------------------------------
    def _pair(self, row: Any, other: Any) -> tuple[Any, Any]:
        """Extents, indices or loops of a tile in the order in which it lies."""
        return (other, row) if self.tile.turned else (row, other)

    def _load(self, buffer: Any, i: Any, other: Any) -> Any:
        return t.load(buffer, *self._pair(i, other))

    def _store(self, buffer: Any, i: Any, other: Any, value: Any) -> Any:
        return t.store(buffer, self._pair(i, other), value)

    # -- conditions ---------------------------------------------------------------------------
    def _exists(self, i: Any) -> Any | None:
        """Whether a row exists; None: always."""
        ragged = is_ragged(self.parts.rows, self.rows * self.tile.units)
        return self.first_row + i < self.parts.rows if ragged else None

    def _row(self, i: Any) -> Any | None:
        """Whether a row is computed; None: always."""
        return self.reached if self.tile.whole_tiles else _and(self.reached, self._exists(i))

    def _padded(self, condition: Any | None, value: Any) -> Any:
        """A value that is read from memory where the condition holds, zero elsewhere."""
        if condition is None or not self.tile.whole_tiles:
            return value
        return tirx.if_then_else(condition, value, tirx.const(0, str(value.ty)))

    def _key(self, at: Any) -> Any | None:
        return at < self.parts.keys if is_ragged(self.parts.keys, self.keys) else None

    def _of_head(self, k: Any) -> Any | None:
        """Whether a head has an element of the tile; None: always."""
        return k < self.parts.head if is_open(self.parts.head) else None

    def _of_value(self, c: Any) -> Any | None:
        """Whether a value has an element of the tile; None: always."""
        return c < self.parts.width if is_open(self.parts.width) else None

    def _both(self, i: Any, at: Any) -> Any | None:
        return _and(self._row(i), self._key(at))

    # -- the tile -----------------------------------------------------------------------------
    def _tile(self) -> Any:
        return t.sequence([self._rows_of_queries(), *self._begin(), self._walk(self.blocks), *self._end()])

    def _rows_of_queries(self) -> Any:
        """Queries on chip, and room for scores."""
        rows, keys = self.rows, self.keys
        dtype = WIDE if self.tile.widened else _source(self.parts.query)
        self.q = self._buffer("q", self._pair(rows, self.head), dtype)
        self.s, self.x, self.w = (self._buffer(name, self._pair(rows, keys), WIDE) for name in "sxw")
        return self._rows("load_q", self.q, self.head, self._query, self._of_head)

    def _begin(self, name: str = "") -> list[Any]:
        """Nothing summed yet."""
        width, zero = self.width, tirx.const(0, WIDE)
        self.m, self.total, self.n, self.a = (
            self._buffer(name + each, (self.rows,), WIDE) for each in "mlna"
        )
        self.o = self._buffer(f"{name}o", self._pair(self.rows, width), WIDE)
        return [
            self._rows("lowest", self.m, None, lambda i: tirx.min_value(WIDE)),
            self._rows("no_sum", self.total, None, lambda i: zero),
            self._rows("no_output", self.o, width, lambda i, c: zero),
        ]

    def _walk(self, steps: int) -> Any:
        """All blocks of keys, or every so-manieth."""
        note: dict[str, Any] = {LOOP: 1}
        if self.tile.stages > 1 and steps >= self.tile.stages:
            note[PIPELINE] = self.tile.stages
        return t.loop("block", steps, self._block, note if steps > 1 else None)

    def _query(self, i: Any, k: Any) -> Any:
        value = self.parts.query(*self.batch, self.first_row + i, k)
        return self._padded(self._exists(i), _wide(value) if self.tile.widened else _bare(value))

    def _rows(self, name: str, buffer: Any, columns: int | None, value: Any, exists: Any = None) -> Any:
        """``buffer[i, ..] = value(i, ..)`` over a tile's rows; ``exists(j)`` says which columns there are."""
        if columns is not None:

            def element(i: Any, j: Any) -> Any:
                inside = _and(self._row(i), exists(j) if exists is not None else None)
                stmt = t.when(inside, self._store(buffer, i, j, value(i, j)))
                return t.block(name, stmt, {ROWS: 1})

            return self._nest(("j", columns), element)

        def single(i: Any) -> Any:
            stmt = t.when(self._row(i), t.store(buffer, (i,), value(i)))
            return t.block(name, stmt, {} if self.tile.turned else {ROWS: 1})

        return t.nest([("i", self.rows)], single)

    def _nest(self, other: tuple[str, int], body: Any) -> Any:
        """``body(i, other)`` over the tile's rows and something else, in the order in which tiles lie."""
        turned = self.tile.turned
        return t.nest(self._pair(("i", self.rows), other), lambda a, b: body(b, a) if turned else body(a, b))

    def _scores(self, name: str, first: Any, body: Any) -> Any:
        """``body(i, j)`` over the rows and keys of a block."""

        def inside(i: Any, j: Any) -> Any:
            return t.block(name, t.when(self._both(i, first + j), body(i, j)), {ROWS: 1})

        return self._nest(("j", self.keys), inside)

    def _first_key(self, number: Any) -> Any:
        """The first key of a block of the walk."""
        return number * self.keys

    def _block(self, number: Any) -> Any:
        """One block of keys."""
        first = self._first_key(number)
        parts, staging = self.parts, []
        self.reached = first < parts.keys if is_open(parts.keys) or self.uneven else None
        if self.beyond is not None:
            self.reached = _and(self.reached, first <= self.last_row + self.beyond)
        key: Any = lambda j, k: parts.key(*self.batch, first + j, k)  # noqa: E731
        value: Any = lambda j, c: parts.value(*self.batch, first + j, c)  # noqa: E731
        if self.tile.staged:
            key, load_key = self._staged("k", key, self.head, self._of_head, first)
            value, load_value = self._staged("v", value, self.width, self._of_value, first)
            staging = [load_key, load_value]
        elif self.tile.held:
            value, load_value = self._held("v", value, self.width, self._of_value, first)
            staging = [load_value]
        s, x, w, m, n, a, total, o = self.s, self.x, self.w, self.m, self.n, self.a, self.total, self.o

        def score(i: Any, j: Any) -> Any:
            def read(node: Any) -> Any:
                if node.source.name == parts.scores:
                    return self._load(s, i, j)
                return self._padded(_and(self._exists(i), self._key(first + j)), node)

            return self.score(*self.batch, self.first_row + i, first + j, load=read)

        body = [
            *staging,
            self._scores("no_score", first, lambda i, j: self._store(s, i, j, tirx.const(0, WIDE))),
            self._product(
                "scores",
                first,
                s,
                ("j", self.keys),
                ("k", self.head),
                self._of_head,
                lambda i, j, k: _wide(self._load(self.q, i, k)) * _wide(key(j, k)),
            ),
            self._scores("argument", first, lambda i, j: self._store(x, i, j, score(i, j))),
            self._rows("old_peak", n, None, lambda i: t.load(m, i)),
            self._scores(
                "peak", first, lambda i, j: t.store(n, (i,), tirx.max(t.load(n, i), self._load(x, i, j)))
            ),
            self._scores(
                "weight",
                first,
                lambda i, j: self._store(w, i, j, tirx.exp(self._load(x, i, j) - t.load(n, i))),
            ),
            self._rows("rescale", a, None, lambda i: tirx.exp(t.load(m, i) - t.load(n, i))),
            self._rows("old_sum", total, None, lambda i: t.load(total, i) * t.load(a, i)),
            self._scores(
                "sum", first, lambda i, j: t.store(total, (i,), t.load(total, i) + self._load(w, i, j))
            ),
            self._rows("old_output", o, self.width, lambda i, c: self._load(o, i, c) * t.load(a, i)),
            *self._weighted(first, value),
            self._rows("new_peak", m, None, lambda i: t.load(n, i)),
        ]
        self.reached = None
        return t.sequence(body)

    def _weighted(self, first: Any, value: Any) -> list[Any]:
        """o += w @ v, the weights as narrow as the function has them."""
        parts, weights, before = self.parts, self.w, []
        if parts.weight_dtype != WIDE and not self.tile.widened:
            weights = self._buffer("wn", self._pair(self.rows, self.keys), parts.weight_dtype)

            def narrowed(i: Any, j: Any) -> Any:
                return self._store(weights, i, j, self._load(self.w, i, j).astype(parts.weight_dtype))

            before = [self._scores("round_weight", first, narrowed)]
        product = self._product(
            "output",
            first,
            self.o,
            ("c", self.width),
            ("j", self.keys),
            self._of_value,
            lambda i, c, j: _wide(self._load(weights, i, j)) * _wide(value(j, c)),
        )
        return [*before, product]

    def _product(
        self,
        name: str,
        first: Any,
        total: Any,
        column: tuple[str, int],
        reduced: tuple[str, int],
        exists: Any,
        factor: Any,
    ) -> Any:
        """``total[i, column] += factor(i, column, reduced)`` as a contraction.

        One of both counts keys; ``exists`` says which elements there are of the other.
        """

        def body(i: Any, c: Any, k: Any) -> Any:
            key, other = (c, k) if column[0] == "j" else (k, c)
            stmt = self._store(total, i, c, self._load(total, i, c) + factor(i, c, k))
            inside = _and(self._both(i, first + key), exists(other))
            return t.block(name, t.when(inside, stmt), {CONTRACT: 1})

        return t.nest([("i", self.rows), column, reduced], body)

    def _staged(self, name: str, form: Any, columns: int, exists: Any, first: Any) -> tuple[Any, Any]:
        """A block of an operand in sram, of which each unit loads a part: reading, and loading."""
        units = self.tile.units
        share = math.ceil(self.keys / units)
        example = form(t.index(0), t.index(0))
        dtype = str(_bare(example).ty)
        buffer = self._buffer(f"{name}_shared", (self.keys, columns), dtype, "shared")

        def body(unit: Any, part: Any, column: Any) -> Any:
            j = unit * share + part
            condition = _and(_and(self.reached, self._key(first + j)), exists(column))
            if self.keys % units:
                condition = _and(j < self.keys, condition)
            return t.block(
                f"load_{name}", t.when(condition, t.store(buffer, (j, column), _bare(form(j, column))))
            )

        def members(unit: Any) -> Any:
            return t.nest(
                [("part", share), ("column", columns)], lambda part, column: body(unit, part, column)
            )

        loading = t.loop("unit", units, members, {GROUP: units} if units > 1 else None)
        return (lambda j, column: t.load(buffer, j, column)), loading

    def _held(self, name: str, form: Any, columns: int, exists: Any, first: Any) -> tuple[Any, Any]:
        """A block of an operand in reg as it lies in memory: reading, and loading."""
        dtype = str(_bare(form(t.index(0), t.index(0))).ty)
        buffer = self._buffer(f"{name}_held", (self.keys, columns), dtype)

        def body(j: Any, column: Any) -> Any:
            inside = _and(_and(self.reached, self._key(first + j)), exists(column))
            stmt = t.store(buffer, (j, column), _bare(form(j, column)))
            return t.block(f"load_{name}", t.when(inside, stmt), {ROWS: 1})

        loading = t.nest([("j", self.keys), ("column", columns)], body)
        return (lambda j, column: t.load(buffer, j, column)), loading

    def _end(self) -> list[Any]:
        """The sums, divided by those of the weights, through the epilogue to memory."""
        parts, one = self.parts, tirx.const(1, WIDE)
        inverse = self._buffer("inverse", (self.rows,), WIDE)

        def divisor(i: Any) -> Any:
            total = t.load(self.total, i)
            return one / (tirx.Select(total == tirx.const(0, WIDE), one, total) if parts.safe else total)

        def result(i: Any, c: Any) -> Any:
            at = (*self.batch, self.first_row + i, c)

            def read(node: Any) -> Any:
                return (
                    self._load(self.o, i, c).astype(str(node.ty)) if node.source.name == parts.sums else node
                )

            indices = [form(*at) for form in parts.output.indices]
            value = parts.output.value(*at, load=read)
            inside = _and(self._exists(i), self._of_value(c))
            return t.block("store", t.when(inside, t.store(parts.output.buffer, indices, value)))

        return [
            self._rows("inverse", inverse, None, divisor),
            self._rows(
                "scale", self.o, self.width, lambda i, c: self._load(self.o, i, c) * t.load(inverse, i)
            ),
            t.nest([("i", self.rows), ("c", self.width)], result),
        ]


def _and(a: Any | None, b: Any | None) -> Any | None:
    """Both conditions; None is always true."""
    return b if a is None else a if b is None else tirx.And(a, b)


def _source(form: Formula) -> str:
    return str(_bare(form.expr).ty)


def _bare(expr: Any) -> Any:
    """A read without the widening around it: what is staged stays as narrow as it is in memory."""
    return expr.value if isinstance(expr, tirx.Cast) and isinstance(expr.value, TensorLoad) else expr


def _wide(expr: Any) -> Any:
    return expr if str(expr.ty) == WIDE else expr.astype(WIDE)
