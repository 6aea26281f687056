# SPDX-License-Identifier: Apache-2.0
"""Expressions of TIR as chains of iOps over a tile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_equal, structural_hash

from ..errors import IGraphError
from ..igraph import ISlice, make
from ..igraph.affine import Affine, var
from ..igraph.dtypes import dtype_of, from_tvm
from ..igraph.iops_scalar import BINARY, COMPARE, UNARY
from ..igraph.tir_calls import EXTERNS, call_name
from .affine_from_tir import AffineConverter
from .box import FULL, Atom, Box, box_of
from .calls import CALLS
from .emit import Const, Emitter, Operand, TileValue
from .function_pointers import FunctionPointers
from .guard import choice
from .load import load
from .node_rules import NODES
from .refusals import refuse


class TileContext:
    """One tile of a leaf: evaluates expressions over it.

    Parameters
    ----------
    tile : (rows, cols).
    names : variables of rows and columns; None where the extent is 1.
    jointly : whether conditions of no row and no column may be one bound between them (`box.box_of`).
    box : the part of the tile that the statement covers; nothing outside of it is computed.
    """

    def __init__(
        self,
        emitter: Emitter,
        memory: FunctionPointers,
        converter: AffineConverter,
        tile: tuple[int, int],
        names: tuple[str | None, str | None],
        block: str,
        jointly: bool = False,
    ) -> None:
        self.emitter, self.memory, self.converter = emitter, memory, converter
        self.tile, self.names, self.block, self.jointly = tile, names, block, jointly
        self.box: Box = FULL
        self.atoms: list[Atom] = []
        self.guards: list[Box | None] = []
        self.lets: dict[Any, Operand] = {}
        self._known: dict[Any, list[tuple[Any, Operand]]] = {}

    # -- memory of values ---------------------------------------------------------------------
    def _context_key(self) -> tuple[Any, ...]:
        return (self.box.key, *(None if guard is None else guard.key for guard in self.guards))

    def recall(self, key: Any, expr: Any = None) -> Operand | None:
        """The value known under a key (and a structurally equal expression) in this context."""
        for known, value in self._known.get((key, self._context_key()), ()):
            if expr is None or structural_equal(known, expr):
                return value
        return None

    def remember(self, key: Any, value: Operand, expr: Any = None) -> Operand:
        """Note a value for `recall`."""
        self._known.setdefault((key, self._context_key()), []).append((expr, value))
        return value

    def forget(self) -> None:
        """Forget every value: memory has changed."""
        self._known.clear()

    def restrict(self, atoms: list[Atom]) -> None:
        """Set the conditions under which the statement is executed.

        Raises
        ------
        NeedsSerialError, NotABoxError
            They are no box of this tile.
        """
        self.atoms = atoms
        self.box = self.box_of(atoms)

    def box_of(self, atoms: list[Atom]) -> Box:
        """The box of this tile in which some conditions hold; raises as `restrict` does."""
        return box_of(atoms, self.tile, self.names, self.converter.space, self.jointly)

    @contextmanager
    def inside(self, box: Box) -> Iterator[None]:
        """Evaluate in a smaller box."""
        outer, self.box = self.box, box
        try:
            yield
        finally:
            self.box = outer

    @contextmanager
    def guarded(self, box: Box | None) -> Iterator[None]:
        """Evaluate what is only legal to load inside of a box, or (None) where data says.

        Outside of the box loads give a pad; without one, anything that lies in the pointer.
        """
        self.guards.append(box)
        try:
            yield
        finally:
            self.guards.pop()

    # -- evaluation ---------------------------------------------------------------------------
    def evaluate(self, expr: Any, into: ISlice | None = None) -> Operand:
        """The value of an expression; ``into`` is where the last iOp may put it (a hint)."""
        key = structural_hash(expr)
        known = self.recall(key, expr)
        if known is not None:
            return known
        value = self._evaluate(expr, into)
        if isinstance(value, TileValue) and into is not None and value.slice is into:
            return value  # not remembered: the place is about to be visible to others
        return self.remember(key, value, expr)

    def _evaluate(self, expr: Any, into: ISlice | None) -> Operand:
        if isinstance(expr, tirx.IntImm | tirx.FloatImm):
            return Const(expr.value, self.dtype(expr))
        if isinstance(expr, tvm.ir.TensorLoad):
            return load(self, expr, into)
        if isinstance(expr, tvm.ir.Var) and expr in self.lets:
            return self.lets[expr]
        if "int" in str(getattr(expr, "ty", "")):
            converted = self.converter.try_convert(expr)
            if converted is not None:
                return self.affine(converted, self.dtype(expr))
        if "bool" in str(getattr(expr, "ty", "")):
            truth = self.converter.decide(expr)
            if truth is not None:
                return Const(truth, "bool")
        if isinstance(expr, tvm.ir.Var) and expr in self.converter.bindings:
            return self.evaluate(self.converter.bindings[expr], into)
        if isinstance(expr, tvm.ir.Call):
            return self._call(expr, into)
        handler = NODES.get(type(expr))
        if handler is None:
            refuse(f"A {type(expr).__name__} has no iOp.", self.block, expr)
        return handler(self, expr, into)

    def dtype(self, expr: Any) -> str:
        """The iGraph's dtype of an expression."""
        try:
            return from_tvm(expr.ty)
        except IGraphError as error:
            refuse(f"The dtype {expr.ty} has no iGraph counterpart.", self.block, expr, need=error.need)

    # -- shapes -------------------------------------------------------------------------------
    def result(self, dtype: str, shape: tuple[int, int], into: ISlice | None = None) -> ISlice:
        """Where a value of that dtype and shape goes: ``into`` where it fits, else a temporary."""
        if into is not None and fits(into, dtype, shape):
            return into
        return self.emitter.temporary(dtype, shape, self.tile, self.box)

    def place(self, value: Operand, shape: tuple[int, int]) -> TileValue:
        """The value as a slice of (at least) a shape: constants are filled, smaller ones broadcast."""
        if isinstance(value, Const):
            key = ("fill", str(value.number), value.dtype, shape)
            known = self.recall(key)
            if isinstance(known, TileValue):
                return known
            target = self.result(value.dtype, shape)
            self.emitter.fill(target, value.number)
            made = TileValue(target)
            self.remember(key, made)
            return made
        if value.shape == shape:
            return value
        if value.shape[1] != shape[1]:
            value = self._broadcast(value, "row", (value.shape[0], shape[1]))
        if value.shape[0] != shape[0]:
            value = self._broadcast(value, "col", (shape[0], value.shape[1]))
        return value

    def _broadcast(self, value: TileValue, axis: str, shape: tuple[int, int]) -> TileValue:
        piece = value.slice
        key = ("broadcast", piece.pointer.name, str(piece.offset), piece.stride, value.shape, shape)
        known = self.recall(key)
        if isinstance(known, TileValue):
            return known
        target = self.result(value.dtype, shape)
        self.emitter.add(make.broadcast(target, piece, axis))
        made = TileValue(target)
        self.remember(key, made)
        return made

    def together(self, *values: Operand) -> list[TileValue]:
        """Values brought to their common shape, constants filled."""
        shape = common_shape(*values)
        return [self.place(value, shape) for value in values]

    # -- iOps ---------------------------------------------------------------------------------
    def unary(
        self, name: str, value: Operand, params: tuple[Any, ...] = (), into: ISlice | None = None
    ) -> TileValue:
        """A unary iOp."""
        (source,) = self.together(value)
        dtype = "bool" if UNARY[name].result == "bool" else source.dtype
        target = self.result(dtype, source.shape, into)
        self.emitter.add(make.unary(name, target, source.slice, list(params)))
        return TileValue(target)

    def binary(self, name: str, a: Operand, b: Operand, into: ISlice | None = None) -> Operand:
        """A binary iOp, in its scalar form where one operand is a number."""
        scalar = BINARY[name].scalar_forms
        if isinstance(a, Const) is not isinstance(b, Const):
            number = a if isinstance(a, Const) else b
            other = b if isinstance(a, Const) else a
            assert isinstance(number, Const)
            form = scalar[0 if isinstance(b, Const) else 1]
            if form is not None and dtype_of(number.dtype).kind in UNARY[form].kinds:
                return self.unary(form, other, (_number(number),), into)
        x, y = self.together(*self._one_width(a, b))
        if dtype_of(x.dtype).kind not in BINARY[name].kinds:
            name = _BOOL_FORMS.get(name, name) if x.dtype == "bool" else _INTEGER_FORMS.get(name, name)
        target = self.result(x.dtype, x.shape, into)
        self.emitter.add(make.binary(name, target, x.slice, y.slice))
        return TileValue(target)

    def _one_width(self, a: Operand, b: Operand) -> tuple[Operand, Operand]:
        """Integers as the wider of two: inlining puts an int64 index where an int32 variable stood."""
        wide, narrow = (dtype_of(x.dtype) for x in (a, b))
        if wide.kind != "int" or narrow.kind != "int" or wide.bytes == narrow.bytes:
            return a, b
        if wide.bytes > narrow.bytes:
            return a, self.cast(b, wide.name)
        return self.cast(a, narrow.name), b

    def compare(self, name: str, a: Operand, b: Operand, into: ISlice | None = None) -> Operand:
        """A comparison."""
        if isinstance(a, Const) and isinstance(b, Const):
            return Const(bool(COMPARE[name].meaning(a.number, b.number)), "bool")
        x, y = self.together(*self._one_width(a, b))
        target = self.result("bool", x.shape, into)
        self.emitter.add(make.compare(name, target, x.slice, y.slice))
        return TileValue(target)

    def select(self, mask: Operand, a: Operand, b: Operand, into: ISlice | None = None) -> Operand:
        """``mask ? a : b``."""
        if isinstance(mask, Const):
            return a if mask.number else b
        m, x, y = self.together(mask, a, b)
        target = self.result(x.dtype, x.shape, into)
        self.emitter.add(make.select(target, m.slice, x.slice, y.slice))
        return TileValue(target)

    def cast(self, value: Operand, dtype: str, into: ISlice | None = None) -> Operand:
        """The value as another dtype."""
        if value.dtype == dtype:
            return value
        if isinstance(value, Const):
            return Const(_as_number(value.number, dtype), dtype)
        target = self.result(dtype, value.shape, into)
        self.emitter.add(make.cast(target, value.slice))
        return TileValue(target)

    def logical(self, name: str, a: Operand, b: Operand, into: ISlice | None = None) -> Operand:
        """``and`` or ``or`` of bools."""
        for x, y in ((a, b), (b, a)):
            if isinstance(x, Const):
                return y if bool(x.number) is (name == "and") else x
        return self.binary(name, a, b, into)

    def negation(self, value: Operand, into: ISlice | None = None) -> Operand:
        """``not`` of a bool."""
        if isinstance(value, Const):
            return Const(not value.number, "bool")
        return self.unary("not", value, into=into)

    # -- index values -------------------------------------------------------------------------
    def affine(self, expr: Affine, dtype: str) -> Operand:
        """A quasi-affine expression as a value: iota, and integer iOps where a tile variable is divided."""
        if expr.is_constant:
            return Const(expr.constant, dtype)
        key = ("affine", str(expr), dtype)
        known = self.recall(key)
        if known is not None:
            return known
        names = [name for name in self.names if name is not None]
        divided = [
            t for t in expr.terms if t.kind != "var" and not all(t.expr.is_linear_in(n) for n in names)
        ]
        if not divided:
            return self.remember(key, self._iota(expr, dtype))
        total: Operand = self.affine(expr - sum((t.expr for t in divided), start=var("pid") * 0), dtype)
        for term in divided:
            part: Operand = self.binary(
                "floordiv" if term.kind == "floordiv" else "mod",
                self.affine(term.argument, dtype),
                Const(term.divisor, dtype),
            )
            if term.coeff != 1:
                part = self.binary("mul", part, Const(term.coeff, dtype))
            total = (
                part if isinstance(total, Const) and total.number == 0 else self.binary("add", total, part)
            )
        return self.remember(key, total)

    def _iota(self, expr: Affine, dtype: str) -> TileValue:
        steps = [0 if name is None else expr.coefficient(name) for name in self.names]
        base = expr.without(name for name in self.names if name is not None)
        shape = (self.tile[0] if steps[0] else 1, self.tile[1] if steps[1] else 1)
        target = self.result(dtype, shape)
        self.emitter.add(make.iota(target, base, *steps))
        return TileValue(target)

    # -- nodes --------------------------------------------------------------------------------
    def _call(self, expr: Any, into: ISlice | None) -> Operand:
        name = call_name(expr)
        if name == "if_then_else":
            condition, a, b = expr.args
            return choice(self, condition, a, b, into)
        if name == "likely":
            return self.evaluate(expr.args[0], into)
        if name in ("call_pure_extern", "call_extern"):
            name = EXTERNS.get(str(expr.args[0].value), str(expr.args[0].value))
            args = expr.args[1:]
        else:
            args = expr.args
        rule: Any = CALLS.get(name)
        if rule is None:
            refuse(
                f"The call {name} has no iOp.",
                self.block,
                expr,
                need="one of " + ", ".join(sorted(CALLS)),
                remedy="run this operator on the host, or express it with other calls",
            )
        return rule(self, [self.evaluate(arg) for arg in args], into)


def fits(into: ISlice, dtype: str, shape: tuple[int, int]) -> bool:
    """Whether a value of that dtype and shape can go to a slice as it is."""
    return bool(into.shape == shape and into.pointer.dtype == dtype)


def common_shape(*values: Operand) -> tuple[int, int]:
    """The smallest shape that all values broadcast to."""
    shapes = [v.shape for v in values if isinstance(v, TileValue)] or [(1, 1)]
    return max(s[0] for s in shapes), max(s[1] for s in shapes)


def _number(value: Const) -> Any:
    return value.number if dtype_of(value.dtype).kind == "float" else int(value.number)


def _as_number(number: Any, dtype: str) -> Any:
    kind = dtype_of(dtype).kind
    if kind == "bool":
        return bool(number)
    if kind == "float":
        return float(number)
    if isinstance(number, float) and not math.isfinite(number):
        raise AssertionError("TVM folds casts of constants, and none of infinity to an integer")
    limits = np.iinfo(dtype_of(dtype).numpy)
    low, high = int(limits.min), int(limits.max)
    if isinstance(number, float):
        return min(max(int(number), low), high)  # as `domain.Values.cast` has it
    return (int(number) - low) % (high - low + 1) + low


#: What arithmetic on bools means.
_BOOL_FORMS = {"add": "or", "mul": "and", "max": "or", "min": "and", "sub": "xor"}
#: Division of integers in TIR's `Div` rounds towards zero.
_INTEGER_FORMS = {"div": "truncdiv"}
