# SPDX-License-Identifier: Apache-2.0
"""A lowered PrimFunc in field arithmetic: floats become int64, their operators calls of `field_llvm`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import StringImm
from tvm_ffi.structural import structural_walk

from ..igraph import finite_field as field
from ..igraph import finite_functions
from ..igraph.dtypes import from_tvm
from ..igraph.iops_scalar import BINARY, UNARY
from ..igraph.tir_calls import EXTERNS, call_name
from . import field_domain
from .field_llvm import text
from .sides import UndecidedError

WORD = "int64"


def to_field(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function over residues.

    Parameters
    ----------
    func : PrimFunc
        Without blocks; its buffers may be of any shape.

    Raises
    ------
    UndecidedError
        A node that says nothing about values, such as one that looks at bits.
    """
    return _Translator().function(func)


_PREFIX = "uir_field_"


def _call(name: str, *args: Any) -> Any:
    return tirx.call_pure_extern(WORD, f"{_PREFIX}{name}", *args)


def _name_of(call: Any) -> list[str]:
    """The function of ours that a call calls, if it does."""
    first = call.args[0] if len(call.args) else None
    return [first.value] if isinstance(first, StringImm) and first.value.startswith(_PREFIX) else []


def _word(number: int) -> Any:
    return tirx.IntImm(WORD, number)


def _is_float(node: Any) -> bool:
    kind = str(getattr(node, "ty", ""))
    return kind.startswith(("float", "bfloat"))


class _Translator:
    def __init__(self) -> None:
        self.vars: dict[Any, Any] = {}

    def function(self, func: tirx.PrimFunc) -> tirx.PrimFunc:
        params = [self.buffer(p) if tirx.buffer.is_buffer_var(p) else p for p in func.params]
        body = self.stmt(func.body)
        called: set[str] = set()
        structural_walk(body, [(tvm.ir.Call, lambda call: called.update(_name_of(call)))])
        body = tirx.AttrStmt(_word(0), "pragma_import_llvm", StringImm(text(called)), body)
        return tirx.PrimFunc(params, body, func.ret_type, func.attrs, func.span)

    def buffer(self, buffer: Any) -> Any:
        """The buffer of residues in place of one of floats; any other is itself."""
        if not str(buffer.dtype).startswith(("float", "bfloat")):
            return buffer
        known = self.vars.get(buffer)
        if known is None:
            if len(buffer.strides):
                raise UndecidedError(f"the buffer {buffer.name} has strides")
            known = tirx.decl_buffer(buffer.shape, WORD, buffer.name, scope=str(buffer.scope()))
            self.vars[buffer] = known
        return known

    # -- statements ---------------------------------------------------------------------------
    def stmt(self, node: Any) -> Any:
        handler = _STATEMENTS.get(type(node))
        if handler is None:
            raise UndecidedError(f"a {type(node).__name__} has no meaning on residues")
        return handler(self, node)

    def _store(self, node: Any) -> Any:
        indices = [self.expr(i) for i in node.indices]
        return tirx.BufferStore(self.buffer(node.buffer), self.expr(node.value), indices)

    def _for(self, node: Any) -> Any:
        return tirx.For(node.loop_var, node.min, node.extent, tirx.ForKind.SERIAL, self.stmt(node.body))

    def _bind(self, node: Any) -> Any:
        return tirx.Bind(self.variable(node.var), self.expr(node.value))

    def _if(self, node: Any) -> Any:
        other = None if node.else_case is None else self.stmt(node.else_case)
        return tirx.IfThenElse(self.expr(node.condition), self.stmt(node.then_case), other)

    def variable(self, var: Any) -> Any:
        """The variable of a residue in place of one of a float."""
        if not _is_float(var):
            return var
        if var not in self.vars:
            self.vars[var] = tirx.Var(var.name, WORD)
        return self.vars[var]

    # -- expressions --------------------------------------------------------------------------
    def expr(self, e: Any) -> Any:
        """The expression; what has no float in it stays as it is."""
        if isinstance(e, tirx.FloatImm):
            return _word(field_domain.constant(float(e.value), from_tvm(e.ty)))
        if isinstance(e, tirx.IntImm | StringImm):
            return e
        if isinstance(e, tvm.ir.TensorLoad):
            return tirx.BufferLoad(self.buffer(e.source), [self.expr(i) for i in e.indices])
        if isinstance(e, tvm.ir.Var):
            return self.variable(e)
        if isinstance(e, tvm.ir.Call):
            return self._called(e)
        if isinstance(e, tirx.Cast):
            return self._cast(e)
        if isinstance(e, tirx.Select):
            return tirx.Select(self.expr(e.condition), self.expr(e.true_value), self.expr(e.false_value))
        if isinstance(e, tirx.Let):
            return tirx.Let(self.variable(e.var), self.expr(e.value), self.expr(e.body))
        if isinstance(e, tirx.Not | tirx.BitwiseNot):
            return type(e)(self.expr(e.a))
        if not hasattr(e, "a"):
            raise UndecidedError(f"a {type(e).__name__} has no meaning on residues")
        a, b = self.expr(e.a), self.expr(e.b)
        if not _is_float(e.a):
            return type(e)(a, b)
        rule = _FLOAT_NODES.get(type(e))
        if rule is None:
            raise UndecidedError(f"a {type(e).__name__} of floats has no meaning on residues")
        return rule(a, b)

    def _cast(self, e: Any) -> Any:
        value, to = self.expr(e.value), str(e.ty)
        if _is_float(e.value):
            if _is_float(e):
                return value
            if to == "bool":
                return tirx.NE(value, _word(field.ZERO))
            return tirx.Cast(to, _call("to_int", value))
        if _is_float(e):
            return _call("from_int", tirx.Cast(WORD, value))
        return tirx.Cast(to, value)

    def _called(self, e: Any) -> Any:
        name, args = call_name(e), list(e.args)
        if name in ("call_pure_extern", "call_extern"):
            name, args = EXTERNS.get(str(args[0].value), str(args[0].value)), args[1:]
        if name == "if_then_else":
            return tirx.if_then_else(*(self.expr(a) for a in args))
        if name == "likely":
            return self.expr(args[0])
        if not any(_is_float(a) for a in args):
            if _is_float(e) or any(isinstance(a, StringImm) for a in args):
                raise UndecidedError(f"{name} has no meaning on residues")
            return tvm.ir.Call(e.op, [self.expr(a) for a in args], ret_ty=e.ty) if args else e
        if name == "pow" and isinstance(args[1], tirx.FloatImm):
            return _power(self.expr(args[0]), args[1])
        values = [self.expr(a) for a in args]
        if name in _CALLS:
            return _CALLS[name](str(args[0].ty), *values)
        if name not in _IOP_NAMES:
            raise UndecidedError(f"{name} has no meaning on residues")
        return _unknown(_IOP_NAMES[name], *values)


def _unknown(name: str, *values: Any) -> Any:
    """A function of which nothing is known but that it is one."""
    return _call("mix" if len(values) == 1 else "mix2", _word(field.code_of(name)), *values)


def _power(x: Any, exponent: Any) -> Any:
    number = float(exponent.value)
    if number == int(number) and abs(number) <= finite_functions.WHOLE_POWERS:
        return _call("power", x, _word(int(number)))
    if abs(number) == 0.5:
        root = _unknown("sqrt", x)
        return _call("inverse", root) if number < 0 else root
    return _unknown("pow", x, _word(field_domain.constant(number, from_tvm(exponent.ty))))


def _number(value: float, dtype: str) -> Any:
    return _word(field_domain.constant(value, from_tvm(dtype)))


def _exp(name: str, x: Any) -> Any:
    return _call("exponential", _word(field.BASES[name]), _word(field.code_of(name)), x)


def _copysign(_: str, x: Any, y: Any) -> Any:
    magnitude = _call("absolute", x)
    below, inverse = (
        tirx.EQ(_call("compare", value, _word(field.ZERO)), _word(-1)) for value in (y, _call("inverse", y))
    )
    negative = tirx.Or(below, inverse)
    return tirx.Select(negative, _call("neg", magnitude), magnitude)


def _test(accepts: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: accepts(_call("compare", a, b))


def _binary(name: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: _call(name, a, b)


def _mixed(name: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: _unknown(name, a, b)


#: Operators of floats; a comparison is -1, 0, 1, or 2 beside NaN.
_FLOAT_NODES: dict[type, Callable[[Any, Any], Any]] = {
    tirx.Add: _binary("add"),
    tirx.Sub: _binary("sub"),
    tirx.Mul: _binary("mul"),
    tirx.Div: _binary("div"),
    tirx.Max: _binary("maximum"),
    tirx.Min: _binary("minimum"),
    tirx.Mod: _mixed("truncmod"),
    tirx.FloorDiv: _mixed("floordiv"),
    tirx.FloorMod: _mixed("mod"),
    tirx.EQ: _test(lambda c: tirx.EQ(c, _word(0))),
    tirx.NE: _test(lambda c: tirx.NE(c, _word(0))),
    tirx.LT: _test(lambda c: tirx.EQ(c, _word(-1))),
    tirx.LE: _test(lambda c: tirx.LE(c, _word(0))),
    tirx.GT: _test(lambda c: tirx.EQ(c, _word(1))),
    tirx.GE: _test(lambda c: tirx.And(tirx.GE(c, _word(0)), tirx.LE(c, _word(1)))),
}

#: Calls that the field knows, by name; each takes the dtype, then the arguments.
_CALLS: dict[str, Callable[..., Any]] = {
    "exp": lambda _, x: _exp("exp", x),
    "exp2": lambda _, x: _exp("exp2", x),
    "exp10": lambda t, x: _unknown("pow", _number(10.0, t), x),
    "log10": lambda t, x: _call("mul", _unknown("log", x), _number(1.0 / math.log(10.0), t)),
    "rsqrt": lambda _, x: _call("inverse", _unknown("sqrt", x)),
    "fabs": lambda _, x: _call("absolute", x),
    "abs": lambda _, x: _call("absolute", x),
    "fma": lambda _, a, b, c: _call("add", _call("mul", a, b), c),
    "hypot": lambda _, a, b: _unknown("sqrt", _call("add", _call("mul", a, a), _call("mul", b, b))),
    "copysign": _copysign,
    "isnan": lambda _, x: tirx.EQ(x, _word(field.NAN)),
    "isinf": lambda _, x: tirx.Or(tirx.EQ(x, _word(field.POS_INF)), tirx.EQ(x, _word(field.NEG_INF))),
    "isfinite": lambda _, x: tirx.GE(x, _word(0)),
}
#: Intrinsic -> the function of iOps that it is.
_IOP_NAMES = {call: name for table in (UNARY, BINARY) for name, row in table.items() for call in row.calls}

_STATEMENTS: dict[type, Callable[[_Translator, Any], Any]] = {
    tirx.BufferStore: _Translator._store,
    tirx.For: _Translator._for,
    tirx.Bind: _Translator._bind,
    tirx.IfThenElse: _Translator._if,
    tirx.SeqStmt: lambda t, node: tirx.SeqStmt([t.stmt(s) for s in node.seq]),
    tirx.AllocBuffer: lambda t, node: tirx.AllocBuffer(t.buffer(node.buffer)),
    tirx.AttrStmt: lambda t, node: t.stmt(node.body),
    tirx.Evaluate: lambda t, node: node,
}
