# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that work element by element, over all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from tvm import relax

from .case import (
    ABOVE_ONE,
    ALL,
    EMPTY,
    FLOATS,
    INTEGERS,
    NONZERO,
    NUMBERS,
    PLAIN,
    POSITIVE,
    RANKS,
    UNIT,
    Case,
    Input,
    Shape,
    Values,
    chosen,
    spread,
    text,
)

op = relax.op
SMALL = spread(0, 3)
#: What is cast to in every rank; to all dtypes in one.
FEW = ("float32", "float16", "bfloat16", "int32", "int8", "bool")

#: operator: (dtypes, values)
UNARY: dict[str, tuple[Sequence[str], Values]] = {
    **dict.fromkeys("erf exp sigmoid sin cos tan tanh sinh cosh atan asinh".split(), (FLOATS, PLAIN)),
    **dict.fromkeys("nn.gelu nn.gelu_tanh nn.selu nn.silu nn.softplus nn.leakyrelu".split(), (FLOATS, PLAIN)),
    **dict.fromkeys("isfinite isinf isnan".split(), (NUMBERS, PLAIN)),
    **dict.fromkeys("log sqrt rsqrt".split(), (FLOATS, POSITIVE)),
    **dict.fromkeys("asin acos atanh".split(), (FLOATS, UNIT)),
    "acosh": (FLOATS, ABOVE_ONE),
    **dict.fromkeys("abs ceil floor negative round sign square trunc nn.relu".split(), (NUMBERS, PLAIN)),
    "bitwise_not": ((*INTEGERS, "bool"), PLAIN),
    "logical_not": (("bool",), PLAIN),
}
_ANY = tuple(ALL)
_WHOLE = tuple(INTEGERS)
_LOGIC = (*INTEGERS, "bool")
#: operator: (dtypes, values of the left and of the right operand)
BINARY: dict[str, tuple[Sequence[str], Values, Values]] = {
    **dict.fromkeys("add subtract multiply maximum minimum".split(), (NUMBERS, PLAIN, PLAIN)),
    **dict.fromkeys("equal not_equal".split(), (_ANY, PLAIN, PLAIN)),
    **dict.fromkeys("greater greater_equal less less_equal".split(), (NUMBERS, PLAIN, PLAIN)),
    **dict.fromkeys("divide floor_divide".split(), (NUMBERS, spread(-9, 9), NONZERO)),
    **dict.fromkeys("mod floor_mod".split(), (NUMBERS, spread(-9, 9), NONZERO)),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), (_LOGIC, PLAIN, PLAIN)),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), (("bool",), PLAIN, PLAIN)),
    **dict.fromkeys("left_shift right_shift".split(), (_WHOLE, PLAIN, SMALL)),
    "power": (NUMBERS, POSITIVE, SMALL),
    "atan2": (FLOATS, PLAIN, PLAIN),
    "log_add_exp": (FLOATS, PLAIN, PLAIN),
}
#: Operators whose NaN stock TVM loses, or orders: NumPy's meaning.
NUMPY: dict[str, Callable[..., Any]] = {
    "nn.relu": lambda x: np.maximum(x, np.float32(0)),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "not_equal": np.not_equal,
}
_EDGES = chosen(0.0, -0.0, 1.0, -1.0, 0.5, -2.5, inf, -inf, nan, 3e38, -3e38, 1e-30, 88.8, -104.0, 2.5, 1.5)
_OTHER_EDGES = chosen(1.0, 0.0, nan, inf, -inf, -0.0, 2.0)


def function(name: str) -> Callable[..., Any]:
    """Relax's own function of an operator's name."""
    module, _, last = name.rpartition(".")
    return getattr(getattr(op, module) if module else op, last)


def _unary() -> Iterator[Case]:
    for name, (dtypes, values) in UNARY.items():
        for dtype in dtypes:
            for shape in (*RANKS, *EMPTY[:2]):
                yield Case(name, f"{dtype}-{text(shape)}", (Input(shape, dtype, values),), function(name))
        if "float32" in dtypes:
            inputs = (Input((16,), "float32", _EDGES),)
            yield Case(name, "float32-edges", inputs, function(name), reference=NUMPY.get(name))


#: Pairs of shapes that broadcast, beside equal ones.
PAIRS: tuple[tuple[Shape, Shape], ...] = (
    ((3, 1), (1, 7)),
    ((2, 3, 5), (5,)),
    ((), (3, 7)),
    ((0, 4), (1, 4)),
    ((2, 1, 2, 3, 2), (3, 1)),
)


def _binary() -> Iterator[Case]:
    for name, (dtypes, left, right) in BINARY.items():
        for dtype in dtypes:
            for a, b in (*((shape, shape) for shape in (*RANKS, EMPTY[1])), *PAIRS):
                inputs = (Input(a, dtype, left), Input(b, dtype, right))
                yield Case(name, f"{dtype}-{text(a)}-{text(b)}", inputs, function(name))
        if "float32" in dtypes:
            inputs = (Input((112,), "float32", _EDGES), Input((112,), "float32", _OTHER_EDGES))
            yield Case(name, "float32-edges", inputs, function(name), reference=NUMPY.get(name))


def _others() -> Iterator[Case]:
    for shape in (*RANKS, *EMPTY[:2]):
        for dtype in ALL:
            x = Input(shape, dtype)
            yield Case(
                "where",
                f"{dtype}-{text(shape)}",
                (Input(shape, "bool"), x, x),
                lambda c, a, b: op.where(c, a, b),
            )
            for to in ALL if shape == RANKS[2] else FEW:
                # what a negative float is as an unsigned integer, no standard says
                given = Input(shape, dtype, POSITIVE) if to.startswith("u") else x
                yield Case(
                    "astype", f"{dtype}-{text(shape)}-{to}", (given,), lambda x, to=to: op.astype(x, to)
                )
        for dtype in NUMBERS:
            x = Input(shape, dtype)
            yield Case("clip", f"{dtype}-{text(shape)}", (x,), lambda x: op.clip(x, 1, 3))
        for dtype in FLOATS:
            x = Input(shape, dtype)
            yield Case("ewise_fma", f"{dtype}-{text(shape)}", (x, x, x), op.ewise_fma)
            yield Case("nn.dropout", f"{dtype}-{text(shape)}", (x,), op.nn.dropout)
    for dtype in ALL:
        inputs = (Input((3, 1), "bool"), Input((7,), dtype), Input((2, 1, 1), dtype))
        yield Case("where", f"{dtype}-broadcast", inputs, op.where)
    for shape in RANKS[2:]:
        for dtype in FLOATS:
            yield Case(
                "nn.prelu",
                f"{dtype}-{text(shape)}",
                (Input(shape, dtype), Input((shape[1],), dtype)),
                op.nn.prelu,
            )


def cases() -> Iterator[Case]:
    """All of this file."""
    yield from _unary()
    yield from _binary()
    yield from _others()
