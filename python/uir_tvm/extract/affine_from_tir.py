# SPDX-License-Identifier: Apache-2.0
"""Integer expressions of TIR as quasi-affine expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import tirx

from ..igraph.affine import Affine, affine
from ..igraph.space import Space
from ..igraph.tir_calls import call_name


class NotAffineError(Exception):
    """An integer expression that no quasi-affine expression equals; the message is the culprit."""

    def __str__(self) -> str:
        # most are caught, and TVM takes long to print
        return str(self.args[0])


class AffineConverter:
    """Converts integer expressions of TIR.

    Parameters
    ----------
    env : Mapping[tvm.tirx.Var, Affine]
        What the loop variables stand for.
    bindings : Mapping[tvm.tirx.Var, tvm.ir.Expr]
        Block iteration variables and let variables, defined by expressions.
    space : Space
        Ranges of the variables that occur in ``env``; they decide min, max and divisions.
    """

    def __init__(self, env: Mapping[Any, Affine], bindings: Mapping[Any, Any], space: Space) -> None:
        self.env, self.bindings, self.space = env, bindings, space
        self.forget()

    def forget(self) -> None:
        """Forget what was converted: `env`, `bindings` or `space` have changed."""
        # by handles of objects, which are kept: equality of TVM's variables makes an expression
        self._bound: dict[int, tuple[Any, Affine]] = {}
        self._converted: dict[int, tuple[Any, Affine | NotAffineError]] = {}

    def convert(self, expr: Any) -> Affine:
        """The expression, simplified by the ranges.

        Raises
        ------
        NotAffineError
            A load, an unknown variable, a product of variables, a division by a variable, ...
        """
        if isinstance(expr, int):
            return affine(expr)
        handle = expr.__chandle__()
        known = self._converted.get(handle)
        if known is None:
            try:
                found: Affine | NotAffineError = self.space.fold(self._convert(expr))
            except NotAffineError as error:
                found = NotAffineError(*error.args)
            known = self._converted[handle] = (expr, found)
        if isinstance(known[1], NotAffineError):
            raise NotAffineError(*known[1].args)
        return known[1]

    def try_convert(self, expr: Any) -> Affine | None:
        """As `convert`, None where it raises."""
        try:
            return self.convert(expr)
        except NotAffineError:
            return None

    def _convert(self, expr: Any) -> Affine:
        kind = type(expr)
        if kind is tirx.IntImm:
            return affine(int(expr.value))
        handler = _NODES.get(kind)
        if handler is None:
            if isinstance(expr, tvm.ir.Var):
                return self._variable(expr)
            if isinstance(expr, tvm.ir.Call):
                handler = _CALLS.get(call_name(expr))
        if handler is None:
            raise NotAffineError(expr)
        value = handler(self, expr)
        bounds = _NARROW.get(str(getattr(expr, "ty", "")))
        if bounds is not None:
            self._check_fits(expr, value, *bounds)
        return value

    def _check_fits(self, expr: Any, value: Affine, least: int, most: int) -> None:
        """Arithmetic on narrow integers wraps around, which no quasi-affine expression here does."""
        low, high = self.space.range(self.space.fold(value))
        if low < least or high > most:
            raise NotAffineError(expr)

    def _variable(self, var: Any) -> Affine:
        handle = var.__chandle__()
        bound = self._bound.get(handle)
        if bound is None:
            known = self.env.get(var)
            if known is None:
                definition = self.bindings.get(var)
                if definition is None:
                    raise NotAffineError(var)
                known = self.convert(definition)
            bound = self._bound[handle] = (var, known)
        return bound[1]

    def _mul(self, expr: Any) -> Affine:
        a, b = self._convert(expr.a), self._convert(expr.b)
        if b.is_constant:
            return a * b.constant
        if a.is_constant:
            return b * a.constant
        raise NotAffineError(expr)

    def _divide(self, expr: Any, a: Any, b: Any, quotient: bool, floor: bool) -> Affine:
        dividend, divisor = self.space.fold(self._convert(a)), self._convert(b)
        if not divisor.is_constant or divisor.constant <= 0:
            raise NotAffineError(expr)
        if not floor and self.space.range(dividend)[0] < 0:
            raise NotAffineError(expr)  # rounds towards zero: only the same where not negative
        k = divisor.constant
        return self.space.floordiv(dividend, k) if quotient else self.space.mod(dividend, k)

    def _extremum(self, expr: Any, choose: Callable[[Affine, Affine], Affine | None]) -> Affine:
        """``min`` or ``max`` where one side always wins."""
        chosen = choose(self.convert(expr.a), self.convert(expr.b))
        if chosen is None:
            raise NotAffineError(expr)
        return chosen

    def _shift(self, expr: Any, a: Any, b: Any, left: bool) -> Affine:
        value, places = self._convert(a), self._convert(b)
        if not places.is_constant or places.constant < 0:
            raise NotAffineError(expr)
        factor = 1 << places.constant
        return value * factor if left else self.space.floordiv(self.space.fold(value), factor)

    def _cast(self, expr: Any) -> Affine:
        if "int" not in str(expr.ty) or "int" not in str(expr.value.ty):
            raise NotAffineError(expr)
        value = self._convert(expr.value)
        if str(expr.ty) in _WIDE:
            self._check_fits(expr, value, *_WIDE[str(expr.ty)])
        return value

    def _choice(self, expr: Any, condition: Any, a: Any, b: Any) -> Affine:
        known = self.decide(condition)
        if known is None:
            raise NotAffineError(expr)
        return self._convert(a if known else b)

    def decide(self, condition: Any) -> bool | None:
        """The truth of a condition that the ranges decide; None when it varies or is not affine."""
        if isinstance(condition, tirx.IntImm):
            return bool(condition.value)
        if isinstance(condition, tirx.And | tirx.Or):
            a, b = self.decide(condition.a), self.decide(condition.b)
            decisive = isinstance(condition, tirx.Or)
            if a is decisive or b is decisive:
                return decisive
            return (not decisive) if a is not None and b is not None else None
        if isinstance(condition, tirx.Not):
            inner = self.decide(condition.a)
            return None if inner is None else not inner
        if isinstance(condition, tvm.ir.Call) and call_name(condition) == "likely":
            return self.decide(condition.args[0])
        if type(condition) not in _COMPARES or "int" not in str(condition.a.ty):
            return None
        left, right = self.try_convert(condition.a), self.try_convert(condition.b)
        if left is None or right is None:
            return None
        lo, hi = self.space.range(self.space.fold(left - right))
        return _COMPARES[type(condition)](lo, hi)


def _decided(always: bool, never: bool) -> bool | None:
    return True if always else False if never else None


#: Comparison of a with b from the range of a - b.
_COMPARES: dict[type, Callable[[int, int], bool | None]] = {
    tirx.LT: lambda lo, hi: _decided(hi < 0, lo >= 0),
    tirx.LE: lambda lo, hi: _decided(hi <= 0, lo > 0),
    tirx.GT: lambda lo, hi: _decided(lo > 0, hi <= 0),
    tirx.GE: lambda lo, hi: _decided(lo >= 0, hi < 0),
    tirx.EQ: lambda lo, hi: _decided(lo == hi == 0, lo > 0 or hi < 0),
    tirx.NE: lambda lo, hi: _decided(lo > 0 or hi < 0, lo == hi == 0),
}

#: Least and most of integers that wrap around in every operation, and of those that only a cast narrows.
_NARROW = {
    **{f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16)},
    **{f"uint{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}
_WIDE = {f"int{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (32, 64)}

_Handler = Callable[[AffineConverter, Any], Affine]

_NODES: dict[type, _Handler] = {
    tirx.Add: lambda c, e: c._convert(e.a) + c._convert(e.b),
    tirx.Sub: lambda c, e: c._convert(e.a) - c._convert(e.b),
    tirx.Mul: lambda c, e: c._mul(e),
    tirx.FloorDiv: lambda c, e: c._divide(e, e.a, e.b, True, True),
    tirx.FloorMod: lambda c, e: c._divide(e, e.a, e.b, False, True),
    tirx.Div: lambda c, e: c._divide(e, e.a, e.b, True, False),
    tirx.Mod: lambda c, e: c._divide(e, e.a, e.b, False, False),
    tirx.Min: lambda c, e: c._extremum(e, c.space.least),
    tirx.Max: lambda c, e: c._extremum(e, c.space.greatest),
    tirx.LShift: lambda c, e: c._shift(e, e.a, e.b, True),
    tirx.RShift: lambda c, e: c._shift(e, e.a, e.b, False),
    tirx.Cast: lambda c, e: c._cast(e),
    tirx.Select: lambda c, e: c._choice(e, e.condition, e.true_value, e.false_value),
}

_CALLS: dict[str, _Handler] = {
    "likely": lambda c, e: c._convert(e.args[0]),
    "shift_left": lambda c, e: c._shift(e, e.args[0], e.args[1], True),
    "shift_right": lambda c, e: c._shift(e, e.args[0], e.args[1], False),
    "if_then_else": lambda c, e: c._choice(e, *e.args),
}
