# SPDX-License-Identifier: Apache-2.0
"""A growing list of TIR statements."""

from __future__ import annotations

import functools
from collections.abc import Callable

import tvm
from tvm import tirx
from tvm.ir import Expr, TensorLoad

from .address import INDEX, as_int, index
from .elements import boundable, convert, lanes_of, like, narrow_of, type_of

KIND = tirx.ForKind
#: Name of the buffers that hold single values.
CELL = "cell"


@functools.cache
def _all_of(lanes: int) -> Expr:
    """The index of all elements of a cell."""
    return index(0) if lanes == 1 else tirx.Ramp(index(0), index(1), lanes)


@functools.cache
def _cell_type(dtype: str, lanes: int) -> tvm.ir.Type:
    """The type of a small buffer."""
    return tirx.decl_buffer((lanes,), dtype, layout=None).ty


def _whole(cell: tirx.Buffer) -> Expr:
    return _all_of(int(cell.ty.shape[0]))


def _is_simple(value: Expr) -> bool:
    """Whether using the value twice costs nothing: a constant, a variable, what a cell holds."""
    if isinstance(value, tirx.Broadcast):
        value = value.value
    if isinstance(value, tirx.NE) and isinstance(value.a, TensorLoad):
        value = value.a  # a mask in its cell
    if isinstance(value, TensorLoad):
        return str(value.source.name).startswith(CELL)
    return isinstance(value, tirx.Var | tirx.IntImm | tirx.FloatImm)


class Code:
    """Statements in order; variables bound here are seen by all that follow."""

    def __init__(self) -> None:
        self.statements: list[tirx.Stmt] = []

    def add(self, *statements: tirx.Stmt) -> None:
        """Append statements."""
        self.statements += statements

    def bind(self, value: Expr) -> Expr:
        """A small buffer that holds ``value``, as the load from it.

        LLVM turns the buffer into a register.  A variable would cost TVM's simplifier, which substitutes
        variables into one another, time exponential in the length of a chain of values.  A number of half
        precision is held as such, and what rounds or stores it again finds it.
        """
        if _is_simple(value):
            return value
        narrow = narrow_of(value)
        if narrow is not None:
            return convert(self.bind(narrow), type_of(value))
        cell = self.cell(type_of(value), lanes_of(value))
        self.put(cell, value)
        return self.get(cell)

    def bind_index(self, value: Expr) -> Expr:
        """A variable that holds an index, so that TVM knows what it ranges over."""
        if isinstance(value, tirx.Var | tirx.IntImm):
            return value
        variable = tirx.Var("i", INDEX)
        self.add(tirx.Bind(variable, value))
        return variable

    def cell(self, dtype: str, lanes: int = 1) -> tirx.Buffer:
        """A small buffer for one scalar or vector; ``bool`` is held as 0 or 1."""
        name = f"{CELL}_mask" if dtype == "bool" else CELL
        buffer = tvm.ir.Var(name, _cell_type("int8" if dtype == "bool" else dtype, lanes))
        self.add(tirx.AllocBuffer(buffer))
        return buffer

    def put(self, cell: tirx.Buffer, value: Expr) -> None:
        """Store into a cell."""
        self.add(tirx.BufferStore(cell, boundable(value), [_whole(cell)]))

    @staticmethod
    def get(cell: tirx.Buffer) -> Expr:
        """What a cell holds."""
        held = tirx.BufferLoad(cell, [_whole(cell)])
        return tirx.NE(held, like(held, 0)) if cell.name.startswith(f"{CELL}_mask") else held

    def loop(
        self,
        begin: Expr,
        count: Expr,
        step: int,
        body: Callable[[Code, Expr], None],
        name: str = "i",
        kind: tirx.ForKind = KIND.SERIAL,
    ) -> None:
        """``for k in range(count): body(begin + k * step)``; a loop of one is unrolled, of none left out."""
        known = as_int(count)
        if known is not None and known <= 0:
            return
        inner = Code()
        if known == 1:
            body(self, begin)
            return
        variable = tirx.Var(name, INDEX)
        body(inner, variable * step + begin)
        if inner.statements:
            self.add(tirx.For(variable, index(0), count, kind, inner.statement()))

    def branch(
        self,
        condition: Expr,
        then: Callable[[Code], None],
        otherwise: Callable[[Code], None] | None = None,
    ) -> None:
        """``if condition: then else: otherwise``."""
        yes, no = Code(), Code()
        then(yes)
        if otherwise is not None:
            otherwise(no)
        if yes.statements or no.statements:
            self.add(tirx.IfThenElse(condition, yes.statement(), no.statement() if no.statements else None))

    def choose(self, condition: Expr, then: Callable[[Code], Expr], otherwise: Expr) -> Expr:
        """``then`` where the condition holds (and is only computed there), else ``otherwise``."""
        cell = self.cell(type_of(otherwise), lanes_of(otherwise))

        def yes(inner: Code) -> None:
            inner.put(cell, then(inner))

        self.branch(condition, yes, lambda inner: inner.put(cell, otherwise))
        return self.get(cell)

    def statement(self) -> tirx.Stmt:
        """All of it as one statement."""
        if not self.statements:
            return tirx.Evaluate(tirx.const(0, "int32"))
        return self.statements[0] if len(self.statements) == 1 else tirx.SeqStmt(self.statements)
