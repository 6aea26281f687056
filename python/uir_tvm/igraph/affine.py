# SPDX-License-Identifier: Apache-2.0
"""Quasi-affine expressions over pid, loop variables and sizes (the C++ objects, with operators).

Addresses of pointers with several open dimensions have products of sizes with other variables too; they are
not affine, and `igraph.coordinates` parts them into expressions that are.

What ranges and divisibility say of expressions is asked of a `igraph.space.Space`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import tvm_ffi
from tvm_ffi.dataclasses import c_class

from ..errors import IGraphError
from .held_fields import Immutable, held, hold
from .once import once

_constant = tvm_ffi.get_global_func("uir.affine.constant")
_var = tvm_ffi.get_global_func("uir.affine.var")
_add = tvm_ffi.get_global_func("uir.affine.add")
_subtract = tvm_ffi.get_global_func("uir.affine.subtract")
_scale = tvm_ffi.get_global_func("uir.affine.scale")
_multiply = tvm_ffi.get_global_func("uir.affine.multiply")
_floordiv = tvm_ffi.get_global_func("uir.affine.floordiv")
_mod = tvm_ffi.get_global_func("uir.affine.mod")
_substitute = tvm_ffi.get_global_func("uir.affine.substitute")
_evaluate = tvm_ffi.get_global_func("uir.affine.evaluate")
_variables = tvm_ffi.get_global_func("uir.affine.variables")
_columns = tvm_ffi.get_global_func("uir.affine.columns")
_growth = tvm_ffi.get_global_func("uir.affine.growth")
_is_linear = tvm_ffi.get_global_func("uir.affine.is_linear")
_is_linear_in = tvm_ffi.get_global_func("uir.affine.is_linear_in")
_is_affine = tvm_ffi.get_global_func("uir.affine.is_affine")
_coefficient = tvm_ffi.get_global_func("uir.affine.coefficient")
_of_term = tvm_ffi.get_global_func("uir.affine.of_term")
_render = tvm_ffi.get_global_func("uir.affine.render")
_to_string = tvm_ffi.get_global_func("uir.affine.to_string")


@held
@c_class("uir.Term", init=False, repr=False)
class Term(Immutable):
    """One term: ``coeff * (var | floor(inner / divisor) | inner mod divisor | var * inner)``.

    ``kind`` is ``var``, ``floordiv``, ``mod`` or ``product``.
    """

    # tvm-ffi-stubgen(begin): object/uir.Term
    # fmt: off
    coeff: int
    kind: str
    var: str
    inner: tvm_ffi.Object | None
    divisor: int
    # fmt: on
    # tvm-ffi-stubgen(end)

    @property
    def expr(self) -> Affine:
        """The term with its coefficient as an expression."""
        return _of_term(self)

    @property
    def argument(self) -> Affine:
        """The inner expression of a floordiv or mod; the other factors of a product."""
        assert isinstance(self.inner, Affine)
        return self.inner

    @property
    def atom(self) -> Affine:
        """The term without its coefficient as an expression."""
        if self.kind == "var":
            return var(str(self.var))
        if self.kind == "product":
            return self.argument * var(str(self.var))
        return self.argument // self.divisor if self.kind == "floordiv" else self.argument % self.divisor


@held
@c_class("uir.Affine", init=False, repr=False)
class Affine(Immutable):
    """``constant + sum(terms)``, canonical; supports ``+ - * // %``; `IGraphError` beyond 64 bits."""

    # tvm-ffi-stubgen(begin): object/uir.Affine
    # fmt: off
    constant: int
    terms: tuple[Term, ...]
    # fmt: on
    # tvm-ffi-stubgen(end)

    def __add__(self, other: AffineLike) -> Affine:
        return _add(self, affine(other))

    __radd__ = __add__

    def __sub__(self, other: AffineLike) -> Affine:
        return _subtract(self, affine(other))

    def __rsub__(self, other: AffineLike) -> Affine:
        return _subtract(affine(other), self)

    def __neg__(self) -> Affine:
        return _scale(self, -1)

    def __mul__(self, factor: AffineLike) -> Affine:
        """The product, of two expressions multiplied out.

        Raises
        ------
        IGraphError
            Two quotients or remainders are multiplied.
        """
        if type(factor) is not int and isinstance(factor, Affine):
            return _multiply(self, factor)
        return _scale(self, _int64(factor))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Affine:
        return _floordiv(self, _int64(divisor))

    def __mod__(self, divisor: int) -> Affine:
        return _mod(self, _int64(divisor))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.is_constant and self.constant == other
        return isinstance(other, Affine) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self.constant) if self.is_constant else hash(str(self))  # equal to an int: its hash

    def __str__(self) -> str:
        text: str | None = self.__dict__.get("text")
        if text is None:
            text = _to_string(self)
            hold(self, text=text)
        return text

    def __repr__(self) -> str:
        return f"Affine({self})"

    @once
    def is_constant(self) -> bool:
        """Whether no variable occurs."""
        return not self.terms

    def variables(self) -> list[str]:
        """Names of the variables, sorted, each once."""
        return list(self._names)

    @once
    def _names(self) -> tuple[str, ...]:
        return tuple(str(_variables(self)).split("\0")[:-1])

    def substitute(self, env: Mapping[str, AffineLike]) -> Affine:
        """The expression with variables replaced."""
        return _substitute(self, {name: affine(value) for name, value in env.items()})

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value for concrete variables.

        Raises
        ------
        ValueError
            A variable has no value.
        IGraphError
            A value on the way leaves 64 bits.
        """
        return _evaluate(self, {name: _int64(value) for name, value in env.items()})

    def coefficient(self, var: str) -> int:
        """The coefficient of the plain term in ``var`` (0 when there is none)."""
        return int(_coefficient(self, var))

    @property
    def is_linear(self) -> bool:
        """Whether there is no division, no remainder and no product."""
        return bool(_is_linear(self))

    def is_linear_in(self, name: str) -> bool:
        """Whether a variable occurs in no division, no remainder and no product."""
        return bool(_is_linear_in(self, name))

    @property
    def is_affine(self) -> bool:
        """Whether there is no product of variables."""
        return bool(_is_affine(self))

    @property
    def multiplied(self) -> set[str]:
        """Variables that occur in products."""
        found: set[str] = set()
        for term in self.terms:
            if term.kind == "product":
                found.update(term.expr.variables())
            elif term.kind != "var":
                found |= term.argument.multiplied
        return found

    def without(self, names: Iterable[str]) -> Affine:
        """The expression with some variables at zero."""
        zero = dict.fromkeys(names, 0)
        return self.substitute(zero) if zero else self

    def growth(self, name: str, step: int) -> int | None:
        """By how much the value grows when a variable does by ``step``; None: not by the same everywhere."""
        found = _growth(self, name, step)
        return None if found is None else int(found)

    def values(self, env: Mapping[str, Any]) -> Any:
        """The values for arrays of values of the variables.

        Parameters
        ----------
        env : mapping of str to int or array of int64
            At least those of `variables`.

        Returns
        -------
        np.ndarray of int64, or np.int64 where all values are single
            Of the shape to which the values of `variables` broadcast.

        Raises
        ------
        IGraphError
            A value on the way leaves 64 bits.
        """
        names = self.variables()
        given = [np.asarray(env[name], np.int64) for name in names]
        shape = given[0].shape if given else ()
        if any(a.shape != shape for a in given):
            given = list(np.broadcast_arrays(*given))
            shape = given[0].shape
        if not shape:
            return np.int64(self.evaluate({name: int(a) for name, a in zip(names, given, strict=True)}))
        out = np.empty(shape, np.int64)
        _columns(self, out, *(x for name, a in zip(names, given, strict=True) for x in (name, _dense(a))))
        return out

    def render(self, names: Mapping[str, str], language: str) -> str:
        """The expression as text of another language, with the variables renamed.

        Parameters
        ----------
        names : mapping of str to str
            Of every variable.
        language : str
            ``isl`` or ``python``.
        """
        return str(_render(self, names, language))


def _dense(values: np.ndarray) -> np.ndarray:
    """What DLPack hands over: dense and, its oldest rule, not read-only."""
    dense = np.ascontiguousarray(values)
    return dense if dense.flags.writeable else dense.copy()


if TYPE_CHECKING:
    AffineLike: TypeAlias = Affine | int
else:
    AffineLike = object


#: Numbers near zero as expressions, which are made once: most offsets and steps are such numbers.
_NUMBERS: dict[int, Affine] = {}
_NEAR = 4096


def affine(value: AffineLike) -> Affine:
    """An expression from an int (or an expression, unchanged)."""
    # Python asks long whether what is none is of a class of objects
    if type(value) is not int:
        return value if isinstance(value, Affine) else _constant(_int64(value))
    known = _NUMBERS.get(value)
    if known is None:
        known = _constant(_int64(value))
        if -_NEAR <= value <= _NEAR:
            _NUMBERS[value] = known
    return known


def _int64(value: int) -> int:
    """A number that 64 bits hold."""
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise IGraphError(
            f"The number {number} is none of 64 bits.",
            limit="addresses and bounds lie between -2^63 and 2^63 - 1",
            remedy="use smaller strides or extents",
        )
    return number


def var(name: str) -> Affine:
    """The expression that is one variable."""
    return _var(name)
