# SPDX-License-Identifier: Apache-2.0
"""Accumulators: of a reduction along rows in registers, of one along columns in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.ir import Expr

from ...igraph.iops import REDUCE
from . import first_lanes
from .actions import Action
from .address import as_int, distance, index
from .buffers import scratch
from .code import Code
from .elements import boundable, element, lanes_of, like
from .emit_value import KernelContext, Point, parameter
from .first_lanes import exist
from .read_once import combines_once, operands
from .scalar_ops import COMBINE

Combine = Callable[[Expr, Expr], Expr]


def _initial(action: Action, lanes: int) -> Expr:
    dtype = action.iop.dtype
    identity: Any = REDUCE[action.iop.name].identity(dtype)
    return parameter(identity, "int8" if dtype == "bool" else dtype, lanes)


def _held_dtype(action: Action) -> str:
    """The accumulator's type: a bool is held as 0 or 1."""
    dtype = element(action.iop.dtype).compute
    return "int8" if dtype == "bool" else dtype


def rounded(action: Action, held: Expr) -> Expr:
    """What an accumulator stands for, rounded."""
    row = element(action.iop.dtype)
    return tirx.NE(held, like(held, 0)) if row.compute == "bool" else row.round(held)


class RowReduction:
    """``copies`` vector accumulators and one scalar, in memory that LLVM turns into registers.

    Several accumulators let additions overlap; they combine as a tree at the end of the row.
    """

    def __init__(self, code: Code, action: Action, lanes: int, copies: int) -> None:
        self.action, self.lanes, self.copies = action, lanes, copies
        self.combine: Combine = COMBINE[action.iop.name]
        self.once = combines_once(action.iop)
        self.dtype = _held_dtype(action)
        name = f"acc_{action.write.pointer.name}"
        self.vectors = [scratch(code, name, self.dtype, lanes) for _ in range(copies)] if lanes > 1 else []
        self.scalar = scratch(code, name, self.dtype, 1)
        for buffer in self.vectors:
            code.add(tirx.BufferStore(buffer, _initial(action, lanes), [self._all(lanes)]))
        code.add(tirx.BufferStore(self.scalar, _initial(action, 1), [index(0)]))
        self.has_scalars = lanes == 1
        #: accumulators that hold something else than the identity
        self._begun: set[int | None] = set()

    @staticmethod
    def _all(lanes: int) -> Expr:
        return tirx.Ramp(index(0), index(1), lanes)

    def take(
        self, code: Code, value: Expr, copy: int | None, point: Point | None = None, once: bool = False
    ) -> None:
        """Combine a vector (or the lanes of it that count) with accumulator ``copy``, less with the scalar.

        ``once``: no loop within the row is around this, so that an accumulator begins with its first value.
        """
        value = boundable(value)
        counts = None if point is None else self._counts(point)
        if counts is not None:
            value = tirx.Select(counts, value, _initial(self.action, self.lanes))
        if copy is not None and self.vectors:
            buffer, at = self.vectors[copy], self._all(self.lanes)
        else:
            buffer, at, value = self.scalar, index(0), self._across(code, code.bind(value))
            self.has_scalars = True
        if once and copy is not None and copy not in self._begun:
            code.add(tirx.BufferStore(buffer, value, [at]))
        else:
            new, old = operands(code, [value, tirx.BufferLoad(buffer, [at])], self.once)
            code.add(tirx.BufferStore(buffer, self.combine(old, new), [at]))
        self._begun.add(copy)

    def _counts(self, point: Point) -> Expr | None:
        """Which lanes are new columns that exist; None: all are."""
        if point.first is not None:
            return exist(point.first, self.lanes)
        return first_lanes.behind(point.again, self.lanes) if point.again else None

    def result(self, code: Code) -> Expr:
        """The value of the row, rounded."""
        totals = [self._across(code, self._whole(code))] if self.vectors else []
        if self.has_scalars:
            totals.append(tirx.BufferLoad(self.scalar, [index(0)]))
        totals = [code.bind(each) for each in totals]
        total = totals[0] if len(totals) == 1 else code.bind(self.combine(*totals))
        return rounded(self.action, total)

    def vector(self, code: Code, lanes: int) -> Expr:
        """So many lanes that make the value of the row together, where no scalars do."""
        value = self._whole(code)
        while lanes_of(value) > lanes:
            value = self._halved(code, value)
        return value

    def _whole(self, code: Code) -> Expr:
        """All vector accumulators combined."""
        loads = [tirx.BufferLoad(buffer, [self._all(self.lanes)]) for buffer in self.vectors]
        parts = operands(code, loads, self.once)
        while len(parts) > 1:
            pairs = [self.combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
            parts = operands(code, pairs, self.once) + ([parts[-1]] if len(parts) % 2 else [])
        return code.bind(parts[0])

    def _across(self, code: Code, value: Expr) -> Expr:
        """The lanes of one vector combined in halves."""
        while lanes_of(value) > 1:
            value = self._halved(code, value)
        return value

    def _halved(self, code: Code, value: Expr) -> Expr:
        lanes = lanes_of(value)
        halves = (range(lanes // 2), range(lanes // 2, lanes))
        low, high = operands(code, [tirx.Shuffle([value], list(half)) for half in halves], self.once)
        return code.bind(self.combine(low, high))


class Collected:
    """A reduction along columns: one accumulator per column, in the target or in a scratch row.

    The scratch row is for targets that hold less than the accumulation is done in.
    """

    def __init__(self, kernel: KernelContext, action: Action, lanes: int) -> None:
        self.kernel, self.action, self.lanes = kernel, action, lanes
        self.combine = COMBINE[action.iop.name]
        row = element(action.iop.dtype)
        self.dtype = _held_dtype(action)
        self.direct = row.storage == row.compute and row.compute != "bool" and action.write.col in (0, 1)
        self.buffer: tirx.Buffer | None = None

    def start(self, code: Code) -> None:
        """Set every column to the identity."""
        if self.direct:
            self.buffer = self.kernel.memory.buffer(self.action.write.pointer)
        else:
            self.buffer = scratch(code, f"acc_{self.action.write.pointer.name}", self.dtype, self.action.cols)
        self._each(code, lambda inner, col, lanes: inner.add(self._put(col, _initial(self.action, lanes))))

    def take(self, code: Code, value: Expr, col: Expr, first: Expr | None = None) -> None:
        """Combine values into their columns, of which only the ``first`` may exist."""
        value = code.bind(boundable(value))
        if first is not None:
            text, buffer, at = self.kernel.text, self.buffer, self._at(col, 1)
            old = code.bind(first_lanes.load(text, buffer, at, lanes_of(value), first))
            new = code.bind(self.combine(old, value))
            code.add(first_lanes.store(text, buffer, at, new, first, not self.kernel.avx512))
            return
        old = code.bind(tirx.BufferLoad(self.buffer, [self._at(col, lanes_of(value))]))
        code.add(self._put(col, self.combine(old, value)))

    def finish(self, code: Code) -> None:
        """Move a scratch row to the target."""
        if self.direct:
            return
        memory, write = self.kernel.memory, self.action.write

        def store(inner: Code, col: Expr, lanes: int) -> None:
            value = inner.bind(tirx.BufferLoad(self.buffer, [self._at(col, lanes)]))
            address = memory.address(self.kernel.scope, write, index(0), col)
            inner.add(memory.store(write, address, rounded(self.action, value)))

        self._each(code, store)

    def _each(self, code: Code, body: Any) -> None:
        scope, box, cols = self.kernel.scope, self.action.box, self.action.cols
        begin, end = scope.bound(box[2], 0, cols), scope.bound(box[3], cols, cols)
        a, b = as_int(begin), as_int(end)
        if a is None or b is None:
            code.loop(begin, distance(begin, end), 1, lambda inner, col: body(inner, col, 1), "c")
            return
        number = max(b - a, 0)
        vectors = number // self.lanes
        code.loop(begin, index(vectors), self.lanes, lambda inner, col: body(inner, col, self.lanes), "c")
        rest = begin + vectors * self.lanes
        code.loop(rest, index(number - vectors * self.lanes), 1, lambda inner, col: body(inner, col, 1), "c")

    def _at(self, col: Expr, lanes: int) -> Expr:
        address = col
        if self.direct:
            address = self.kernel.memory.address(self.kernel.scope, self.action.write, index(0), col)
        return address if lanes == 1 else tirx.Ramp(address, index(1), lanes)

    def _put(self, col: Expr, value: Expr) -> tirx.Stmt:
        return tirx.BufferStore(self.buffer, value, [self._at(col, lanes_of(value))])
