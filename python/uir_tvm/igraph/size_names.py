# SPDX-License-Identifier: Apache-2.0
"""Sizes that follow from others, and their names, which say how.

``n_times_m`` is a product of sizes.  ``n_over_2`` is the whole of n/2, ``k_plus_3_minus_c`` is
``k + 3 - c``, ``n_minus_1_over_2_plus_1`` is ``(n - 1) // 2 + 1``, ``n_from_12`` is ``12 - n``: steps from
the left, by numbers or sizes.  A launch computes them from the sizes of its tensors' shapes.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_walk

#: Between the names of the factors in the name of a product of sizes.
TIMES = "_times_"

Value = TypeVar("Value")

#: Steps by their words, and as text.
_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "plus": operator.add,
    "minus": operator.sub,
    "by": operator.mul,
    "over": operator.floordiv,
    "from": lambda one, other: other - one,
}
_SIGNS = {"plus": "+", "minus": "-", "by": "*", "over": "//"}
_WORD = re.compile(f"_({'|'.join(_STEPS)})_")


def follows(name: str) -> bool:
    """Whether a name says of what it follows, as far as names go.

    >>> follows("n_over_2"), follows("n_times_m"), follows("n")
    (True, True, False)
    """
    return TIMES in name or _WORD.search(name) is not None


def value_of(name: str, known: Mapping[str, Value]) -> Value:
    """What a size is where others are known: numbers, or expressions that know ``+ - * //``.

    Raises
    ------
    KeyError
        Of a size that is not known, with its name.

    >>> value_of("n_minus_1_over_2_times_m", {"n": 8, "m": 5})
    15
    """
    if name in known:
        return known[name]
    return functools.reduce(operator.mul, (_factor(factor, known) for factor in name.split(TIMES)))


def _factor(name: str, known: Mapping[str, Value]) -> Value:
    if name in known:
        return known[name]
    first, *rest = _WORD.split(name)
    value: Any = known[first]
    for word, operand in zip(rest[::2], rest[1::2], strict=True):
        value = _STEPS[word](value, int(operand) if operand.isdecimal() else known[operand])
    return value


def text_of(name: str, told: Callable[[str], str] = str) -> str:
    """A size as an expression in text; ``told`` says what a size is called.

    >>> text_of("n_over_2"), text_of("n_times_m"), text_of("n_minus_1_over_2")
    ('n // 2', 'n * m', '(n - 1) // 2')
    """
    factors = [_factor_text(factor, told) for factor in name.split(TIMES)]
    if len(factors) == 1:
        return factors[0]
    return " * ".join(factor if factor.isidentifier() else f"({factor})" for factor in factors)


def _factor_text(name: str, told: Callable[[str], str]) -> str:
    def operand_text(operand: str) -> str:
        text = operand if operand.isdecimal() else told(operand)
        return text if text.isalnum() or text.isidentifier() else f"({text})"

    first, *rest = _WORD.split(name)
    text = told(first)
    for word, operand in zip(rest[::2], rest[1::2], strict=True):
        text = text if text.isidentifier() or word in ("plus", "minus") else f"({text})"
        if word == "from":
            text = f"{operand_text(operand)} - {text}"
            continue
        text = f"{text} {_SIGNS[word]} {operand_text(operand)}"
    return text


def renamed(name: str, other: Mapping[str, str]) -> str:
    """The name of a size where those that it follows from have other names."""
    if name in other:
        return other[name]
    factors = (_WORD.split(factor) for factor in name.split(TIMES))
    return TIMES.join(
        "".join(f"_{p}_" if k % 2 else other.get(p, p) for k, p in enumerate(parts)) for parts in factors
    )


def name_of(expr: Any) -> str | None:
    """The name of a size that follows from variables as an expression of TIR does; None: no name says it."""
    made = _written(expr)
    if made is None:
        return None
    variables: list[Any] = []
    structural_walk(expr, (tvm.ir.Var, variables.append))
    try:
        back = value_of(made, {str(variable.name): variable for variable in variables})
    except (KeyError, ValueError):
        return None
    return made if tvm.sym.Analyzer().can_prove_equal(back, expr) else None


def _written(expr: Any) -> str | None:
    if isinstance(expr, tvm.ir.Var):
        return str(expr.name)
    if isinstance(expr, tirx.Sub) and isinstance(expr.a, tirx.IntImm) and int(expr.a) >= 0:
        taken = _written(expr.b)
        return None if taken is None else f"{taken}_from_{int(expr.a)}"
    for kind, word, opposite in (
        (tirx.Add, "plus", "minus"),
        (tirx.Sub, "minus", "plus"),
        (tirx.Mul, "by", ""),
        (tirx.FloorDiv, "over", ""),
    ):
        if not isinstance(expr, kind):
            continue
        left = _written(expr.a)
        if left is None:
            return None
        if isinstance(expr.b, tvm.ir.Var):
            return f"{left}_{word}_{expr.b.name}" if opposite else None
        if not isinstance(expr.b, tirx.IntImm):
            return None
        number = int(expr.b)
        if number < 0:
            return f"{left}_{opposite}_{-number}" if opposite else None
        return f"{left}_{word}_{number}"
    return None
