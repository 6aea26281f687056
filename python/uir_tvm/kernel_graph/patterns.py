# SPDX-License-Identifier: Apache-2.0
"""Groups of operators that are one known function: recognised, and replaced by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tvm import relax

from .program import Op, Program, Value, View, is_float


def reading_counts(program: Program) -> dict[Value, int]:
    """Number of readings of every value, outputs included."""
    counts: dict[Value, int] = {}
    for op in program.ops:
        for view in op.operands:
            counts[view.base] = counts.get(view.base, 0) + 1
    for view in program.outputs:
        counts[view.base] = counts.get(view.base, 0) + 1
    return counts


def producer(view: View, name: str) -> Op | None:
    """The operator that makes a whole view, if it has this name."""
    op = view.base.producer
    return op if op is not None and op.name == name and view.is_whole else None


def commuted(op: Op) -> Iterator[tuple[View, View]]:
    """Both orders of a binary operator's operands."""
    a, b = op.operands
    yield a, b
    yield b, a


#: Relative distance of a number from its nearest one of a type: half a unit in the last place; in float32
#: what writing the number out with seven digits may have lost.
ROUNDED = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 1e-6, "float64": 2.0**-53}


def _is(view: View, number: float) -> bool:
    """Whether a view is this number everywhere, as its type has it; exactly, for a short binary fraction."""
    found = view.scalar
    if not isinstance(found, int | float):
        return False
    near = 0.0 if (number * 2**8).is_integer() else ROUNDED.get(view.base.dtype, 0.0)
    return math.isclose(found, number, rel_tol=near, abs_tol=0.0)


def same_view(a: View, b: View) -> bool:
    """Whether two views are of the same elements in the same order."""
    return a.base is b.base and a.layout == b.layout


def silu(op: Op) -> View | None:
    """x * sigmoid(x)."""
    for x, gate in commuted(op):
        sigmoid = producer(gate, "sigmoid")
        if sigmoid is not None and same_view(sigmoid.operands[0], x):
            return x
    return None


def _scaled(view: View, number: float) -> View | None:
    """x where the view is x * number."""
    op = producer(view, "multiply")
    if op is None:
        return None
    return next((x for x, factor in commuted(op) if _is(factor, number)), None)


def _plus_one(view: View, name: str) -> View | None:
    """x where the view is 1 + name(x)."""
    op = producer(view, "add")
    if op is None:
        return None
    for inner, one in commuted(op):
        function = producer(inner, name)
        if function is not None and _is(one, 1.0):
            return function.operands[0]
    return None


def _cube(view: View) -> View | None:
    """x where the view is x * x * x in any order, or x ** 3."""
    power = producer(view, "power")
    if power is not None and _is(power.operands[1], 3.0):
        return power.operands[0]
    op = producer(view, "multiply")
    if op is None:
        return None
    for squared, x in commuted(op):
        square = producer(squared, "multiply")
        if square is not None and all(same_view(operand, x) for operand in square.operands):
            return x
        square = producer(squared, "square")
        if square is not None and same_view(square.operands[0], x):
            return x
    return None


def _gelu_argument(view: View) -> View | None:
    """x where the view is sqrt(2/pi) * (x + 0.044715 * x^3)."""
    total = _scaled(view, math.sqrt(2 / math.pi))
    add = producer(total, "add") if total is not None else None
    if add is None:
        return None
    for x, term in commuted(add):
        cubic = _scaled(term, 0.044715)
        cubed = _cube(cubic) if cubic is not None else None
        if cubed is not None and same_view(cubed, x):
            return x
    return None


def _half_times(op: Op, name: str, argument: Callable[[View], View | None]) -> View | None:
    """x where the operator is 0.5 * x * (1 + name(argument(x))), however the products are grouped."""
    for a, b in commuted(op):
        if _is(b, 0.5):  # (x * (1 + f)) * 0.5
            inner = producer(a, "multiply")
            found = _product_with(inner, name, argument, scaled=False) if inner is not None else None
        else:  # (0.5 * x) * (1 + f), either way round
            found = _gate(a, b, name, argument, scaled=True)
        if found is not None:
            return found
    return None


def _product_with(op: Op, name: str, argument: Callable[[View], View | None], scaled: bool) -> View | None:
    for a, b in commuted(op):
        found = _gate(a, b, name, argument, scaled)
        if found is not None:
            return found
    return None


def _gate(a: View, b: View, name: str, argument: Callable[[View], View | None], scaled: bool) -> View | None:
    inner = _plus_one(b, name)
    x = argument(inner) if inner is not None else None
    if x is None:
        # x * (0.5 * (1 + f)) keeps the half with the gate instead
        gate = _scaled(b, 0.5) if scaled else None
        inner = _plus_one(gate, name) if gate is not None else None
        x = argument(inner) if inner is not None else None
        return x if x is not None and same_view(a, x) else None
    left = _scaled(a, 0.5) if scaled else a
    return x if left is not None and same_view(left, x) else None


def gelu_tanh(op: Op) -> View | None:
    """0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) (arXiv 1606.08415)."""
    return _half_times(op, "tanh", _gelu_argument)


def _over_root_two(view: View) -> View | None:
    """x where the view is x / sqrt(2)."""
    found = _scaled(view, math.sqrt(0.5))
    divide = producer(view, "divide")
    if found is None and divide is not None and _is(divide.operands[1], math.sqrt(2)):
        found = divide.operands[0]
    return found


def gelu(op: Op) -> View | None:
    """0.5 * x * (1 + erf(x / sqrt(2))) (arXiv 1606.08415)."""
    return _half_times(op, "erf", _over_root_two)


# Functions of one argument: the operator that ends the pattern, its name as one operator.
UNARY_PATTERNS: tuple[tuple[str, Callable[[Op], View | None], str], ...] = (
    ("multiply", silu, "nn.silu"),
    ("multiply", gelu_tanh, "nn.gelu_tanh"),
    ("multiply", gelu, "nn.gelu"),
)
_CALLS = {"nn.silu": relax.op.nn.silu, "nn.gelu_tanh": relax.op.nn.gelu_tanh, "nn.gelu": relax.op.nn.gelu}


#: Operator -> the number that, as its second operand, leaves every float as it is: the sign of a zero too.
#: x + 0 is not among them, as -0 + 0 is +0.
NEUTRAL = {"add": -0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}


def _is_neutral(name: str, number: View, fast_math: bool) -> bool:
    found, neutral = number.scalar, NEUTRAL[name]
    if found is None or found != neutral:
        return False
    signed = neutral == 0 and is_float(number.base.dtype) and not fast_math
    return not signed or math.copysign(1.0, found) == math.copysign(1.0, neutral)


def drop_neutral(program: Program, fast_math: bool = False) -> None:
    """x + (-0), x - 0, x * 1, x / 1 -> x; of integers, and with ``fast_math``, zeros of either sign."""
    for op in list(program.ops):
        if op.name not in NEUTRAL:
            continue
        pairs = commuted(op) if op.name in ("add", "multiply") else iter([(op.operands[0], op.operands[1])])
        for x, number in pairs:
            if _is_neutral(op.name, number, fast_math) and x.base.dtype == op.result.dtype:
                program.replace_value(op.result, x)
                break
    program.remove_dead()


def recognise_functions(program: Program) -> None:
    """Replace `UNARY_PATTERNS` by the one operator that each of them is."""
    for index, op in enumerate(program.ops):
        for last, pattern, name in UNARY_PATTERNS:
            x = pattern(op) if op.name == last else None
            if x is None:
                continue
            placeholder = relax.Var("x", relax.TensorType(op.shape, op.result.dtype))
            new = Op(name, _CALLS[name](placeholder), [x], op.results)
            op.result.producer = new
            program.ops[index] = new
            break
    program.remove_dead()
