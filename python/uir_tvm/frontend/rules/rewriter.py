# SPDX-License-Identifier: Apache-2.0
"""Rebuilds a Relax function call by call; what the rules work with."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import tvm
import tvm_ffi
from tvm import relax

from ...sizes.open_arithmetic import same
from ..fold import fold
from ..relax_view import Shape, address_of, integers, is_constant, op_name, shape_of, size_of
from .empty import empty_value, without_empty

Rule = Callable[[tvm.ir.Call, "Rewriter"], "tvm.ir.Expr | None"]

# Constants of at most so many bytes are compared by value, larger ones by identity.
SMALL_BYTES = 4096


class Rewriter:
    """Rebuilds a function call by call: folds constants, applies rules, shares equal calls.

    Parameters
    ----------
    builder : relax.BlockBuilder
        Inside a dataflow block, where the results are bound.
    rules : mapping of str to sequence of Rule
        By operator name, without ``relax.``.
    """

    def __init__(self, builder: relax.BlockBuilder, rules: Mapping[str, Sequence[Rule]]) -> None:
        self.builder = builder
        self.rules = rules
        self._values: dict[int, tvm.ir.Expr] = {}
        self._producers: dict[int, tvm.ir.Expr] = {}
        self._uses: dict[int, int] = {}
        self._known: dict[Hashable, tvm.ir.Expr] = {}
        self._alive: list[tvm.ir.Expr] = []  # keys above are addresses: nothing they name may be freed

    def bind(self, var: tvm.ir.Var, value: tvm.ir.Expr, uses: int) -> None:
        """Let a variable of the old function stand for a value of the new one."""
        self._alive.append(var)
        self._values[address_of(var)] = value
        if isinstance(value, tvm.ir.Var):
            self._uses[address_of(value)] = self._uses.get(address_of(value), 0) + uses

    def value(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """An old expression's leaf or tuple in terms of the new function."""
        if isinstance(expr, tvm.ir.Tuple):
            return relax.Tuple([self.value(field) for field in expr.fields])
        if isinstance(expr, tvm.ir.Var):
            return self._values.get(address_of(expr), expr)
        return expr

    def made_by(self, expr: tvm.ir.Expr, *names: str) -> tvm.ir.Call | None:
        """The call that a new variable is bound to, if it is of one of these operators."""
        call = self._producers.get(address_of(expr)) if isinstance(expr, tvm.ir.Var) else None
        return call if op_name(call) in names else None

    def uses(self, var: tvm.ir.Expr) -> int:
        """How often the old function read the variables that this one stands for; 0 if it stands for none."""
        return self._uses.get(address_of(var), 0)

    def cast(self, expr: tvm.ir.Expr, type_: relax.TensorType) -> tvm.ir.Expr:
        """The same value with a type that is known from elsewhere."""
        if tvm_ffi.structural_equal(expr.ty, type_):
            return expr
        var = self.builder.match_cast(expr, type_)
        self._alive.append(var)
        if address_of(expr) in self._producers:
            self._producers[address_of(var)] = self._producers[address_of(expr)]
        return var

    def reshape(self, expr: tvm.ir.Expr, shape: Shape) -> tvm.ir.Expr:
        """The same elements in another shape, looking through the reshapes before."""
        while (inner := self.made_by(expr, "reshape")) is not None:
            expr = inner.args[0]
        if same(shape_of(expr), shape):
            return expr
        return self._emit_plain(relax.op.reshape(expr, shape))

    def broadcast(self, expr: tvm.ir.Expr, shape: Shape) -> tvm.ir.Expr:
        """The value repeated to a shape."""
        if same(shape_of(expr), shape):
            return expr
        return self.emit(relax.op.broadcast_to(expr, shape))

    def emit(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """Bind an expression over new values, simplified, and return what stands for it."""
        if isinstance(expr, tvm.ir.TupleGetItem):
            return self._element(expr)
        if not isinstance(expr, tvm.ir.Call):
            return self.value(expr)
        call = self.builder.normalize(expr)
        constant = self._constant(call)
        if constant is not None:
            return constant
        rest = without_empty(call)
        if rest is not None:
            return self.emit(rest)
        for rule in self.rules.get(op_name(call), ()):
            simpler = rule(call, self)
            if simpler is not None:
                return simpler
        return self._emit_plain(call)

    def _emit_plain(self, expr: tvm.ir.Expr) -> tvm.ir.Expr:
        """Bind a call as it is (or fold it), once for all equal calls."""
        call = self.builder.normalize(expr)
        if isinstance(call, tvm.ir.Call):
            constant = self._constant(call)
            if constant is not None:
                return constant
        key = self._key(call)
        if key is not None and key in self._known:
            return self._known[key]
        var = self.builder.emit(call)
        self._producers[address_of(var)] = call
        self._alive.append(var)
        if key is not None:
            self._known[key] = var
        return var

    def _constant(self, call: tvm.ir.Call) -> tvm.ir.Expr | None:
        """What a call of constants, or one whose result has no elements, computes; else None."""
        empty = empty_value(call.ty)
        if empty is not None:
            return empty
        constant = fold(call)
        return None if constant is None else self._share(constant)

    def _share(self, constant: tvm.ir.GenericConst) -> tvm.ir.Expr:
        """Equal small constants become one object."""
        return self._known.setdefault(self._key(constant), constant)

    def _element(self, item: tvm.ir.TupleGetItem) -> tvm.ir.Expr:
        """Element of a tuple: itself where the tuple is written out, a slice where it is a split."""
        source, index = self.value(item.tuple_value), int(item.index)
        if isinstance(source, tvm.ir.Tuple):
            return source.fields[index]
        call = self.made_by(source, "split")
        if call is not None:
            piece = _split_piece(call, index)
            if piece is not None:
                return self.emit(piece)
        return self._emit_plain(relax.TupleGetItem(source, index))

    def _key(self, expr: tvm.ir.Expr) -> Hashable:
        """Equal for expressions that are surely equal; None where that cannot be told."""
        if isinstance(expr, tvm.ir.Call):
            args = tuple(self._key(arg) for arg in expr.args)
            known = isinstance(expr.op, tvm.ir.Op) and None not in args and not _impure(expr)
            return (expr.op.name, args, str(expr.attrs)) if known else None
        if isinstance(expr, tvm.ir.TupleGetItem):
            return ("item", self._key(expr.tuple_value), int(expr.index))
        if isinstance(expr, tvm.ir.Tuple):
            fields = tuple(self._key(field) for field in expr.fields)
            return None if None in fields else ("tuple", fields)
        if is_constant(expr):
            shape = shape_of(expr)
            self._alive.append(expr)
            if shape is not None and size_of(shape) * 8 <= SMALL_BYTES:
                return ("constant", str(expr.ty.dtype), shape, expr.value.numpy().tobytes())
            return ("constant", address_of(expr))
        if isinstance(expr, relax.ShapeExpr):
            numbers = integers(expr)
            return None if numbers is None else ("shape", numbers)
        if isinstance(expr, tvm.tirx.IntImm | tvm.tirx.FloatImm):
            return ("number", str(expr.ty), expr.value)
        if isinstance(expr, tvm.ir.Var):
            self._alive.append(expr)
            return ("var", address_of(expr))
        return None


def _impure(call: tvm.ir.Call) -> bool:
    """Calls that are not a function of their arguments: equal ones must not be shared."""
    return op_name(call).startswith(("call_", "random", "multinomial"))


def _split_piece(call: tvm.ir.Call, index: int) -> tvm.ir.Expr | None:
    """split(x, sections or boundaries)[index] as a slice of x."""
    shape = shape_of(call.args[0])
    if shape is None:
        return None
    axis = int(call.attrs.axis) % len(shape)
    sections = call.attrs.indices_or_sections
    if isinstance(sections, int | tvm.tirx.IntImm):
        step = -(-shape[axis] // int(sections))
        edges = [min(step * k, shape[axis]) for k in range(int(sections) + 1)]
    else:
        boundaries = integers(sections)
        if boundaries is None:
            return None
        edges = [0, *boundaries, shape[axis]]
    return relax.op.strided_slice(call.args[0], [axis], [edges[index]], [edges[index + 1]])


def recall(call: tvm.ir.Call, args: Sequence[tvm.ir.Expr], out_dtype: str | None = None) -> tvm.ir.Call:
    """The same operator and attributes on other arguments, or with another dtype that its attributes name."""
    attributes = call.attrs
    if out_dtype is not None:
        known = type(attributes).__tvm_ffi_type_info__
        fields = {field.name: getattr(attributes, field.name) for field in known.fields}
        attributes = tvm.ir.make_node(known.type_key, **{**fields, "out_dtype": out_dtype})
    return relax.Call(call.op, list(args), attributes, call.ty_args)
