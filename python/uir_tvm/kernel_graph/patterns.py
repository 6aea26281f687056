# SPDX-License-Identifier: Apache-2.0
"""Groups of operators that are one known function: recognised, and replaced by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from tvm import relax

from .program import Op, Program, Value, View, compose


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


def _is(view: View, number: float) -> bool:
    found = view.scalar
    return isinstance(found, int | float) and math.isclose(found, number, rel_tol=1e-6, abs_tol=0.0)


def _same(a: View, b: View) -> bool:
    return a.base is b.base and a.layout == b.layout


def silu(op: Op) -> View | None:
    """x * sigmoid(x)."""
    for x, gate in commuted(op):
        sigmoid = producer(gate, "sigmoid")
        if sigmoid is not None and _same(sigmoid.operands[0], x):
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
        if square is not None and all(_same(operand, x) for operand in square.operands):
            return x
        square = producer(squared, "square")
        if square is not None and _same(square.operands[0], x):
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
        if cubed is not None and _same(cubed, x):
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
        return x if x is not None and _same(a, x) else None
    left = _scaled(a, 0.5) if scaled else a
    return x if left is not None and _same(left, x) else None


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


def _is_minus_infinity(view: View) -> bool:
    return view.scalar == -math.inf


def _is_zero(view: View) -> bool:
    return view.scalar == 0


# Functions of one argument: the operator that ends the pattern, its name as one operator.
UNARY_PATTERNS: tuple[tuple[str, Callable[[Op], View | None], str], ...] = (
    ("multiply", silu, "nn.silu"),
    ("multiply", gelu_tanh, "nn.gelu_tanh"),
    ("multiply", gelu, "nn.gelu"),
)
_CALLS = {"nn.silu": relax.op.nn.silu, "nn.gelu_tanh": relax.op.nn.gelu_tanh, "nn.gelu": relax.op.nn.gelu}


def drop_neutral(program: Program) -> None:
    """x + 0, x - 0, x * 1, x / 1 -> x (a negative zero may become a positive one, or stay one)."""
    for op in list(program.ops):
        if op.name not in NEUTRAL:
            continue
        pairs = commuted(op) if op.name in ("add", "multiply") else iter([(op.operands[0], op.operands[1])])
        for x, number in pairs:
            if number.scalar == NEUTRAL[op.name] and x.base.dtype == op.result.dtype:
                program.replace_value(op.result, x)
                break
    program.remove_dead()


NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}


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


def _any_open(view: View) -> Op | None:
    """The row maximum r where the view is r > -inf (or not (r == -inf))."""
    op = view.base.producer
    if op is None or op.name not in ("greater", "not_equal") or not _is_minus_infinity(op.operands[1]):
        return None
    inner = op.operands[0].base.producer
    return inner if inner is not None and inner.name == "max" else None


def _mask_of(score: View, mask: Value) -> bool:
    """Whether the scores are a sum with a broadcast of this mask as one term."""
    op = producer(score, "add")
    return op is not None and any(operand.base is mask for operand in op.operands)


def safe_softmax(program: Program) -> None:
    """where(max(mask) > -inf, softmax(score + mask) @ v, 0) -> safe_softmax(score + mask) @ v.

    A row whose scores are all -inf has no softmax: the programs that export attention replace what follows
    from it by zeros.  A softmax that gives zeros for such a row makes the replacement needless (finite v).
    """
    counts = reading_counts(program)
    for select in list(program.ops):
        if select.name != "where" or not _is_zero(select.operands[2]):
            continue
        condition, attended, _ = select.operands
        maximum = _any_open(condition)
        matmul = producer(attended, "matmul")
        if maximum is None or matmul is None or counts[matmul.result] != 1:
            continue
        softmax = producer(matmul.operands[0], "nn.softmax")
        axis = -1 if softmax is None or softmax.call is None else int(softmax.call.attrs.axis)
        if softmax is None or axis not in (-1, len(softmax.shape) - 1) or counts[softmax.result] != 1:
            continue
        if not _mask_of(softmax.operands[0], maximum.operands[0].base):
            continue
        softmax.name = "uir.safe_softmax"
        program.replace_value(select.result, matmul.result.view())
    program.remove_dead()


def fold_scales(program: Program) -> None:
    """matmul(a * s, b), matmul(a, b * s), matmul(a, b) * s, matmul(a, b) / s -> matmul with alpha = s.

    For one number s.  This moves a rounding (of s * a or of 1 / s) and changes results by an ulp or so.
    """
    counts = reading_counts(program)
    for op in list(program.ops):
        if op.name != "matmul":
            continue
        for index, view in enumerate(op.operands):
            scale = view.base.producer
            if scale is None or scale.name not in ("multiply", "divide") or counts[view.base] != 1:
                continue
            found = _scale_of(scale)
            if found is not None:
                source, factor = found
                composed = _through(view, source)
                if composed is not None:
                    op.operands[index] = composed
                    op.attrs["alpha"] = op.attrs.get("alpha", 1.0) * factor
    for scale in list(program.ops):
        if scale.name not in ("multiply", "divide"):
            continue
        found = _scale_of(scale)
        matmul = producer(found[0], "matmul") if found is not None else None
        if found is None or matmul is None or counts[matmul.result] != 1:
            continue
        matmul.attrs["alpha"] = matmul.attrs.get("alpha", 1.0) * found[1]
        program.replace_value(scale.result, matmul.result.view())
    program.remove_dead()


def _scale_of(op: Op) -> tuple[View, float] | None:
    """Tensor and number of a product with, or a quotient by, one finite number."""
    if not op.result.dtype.startswith("float"):
        return None
    pairs = commuted(op) if op.name == "multiply" else iter([(op.operands[0], op.operands[1])])
    for tensor, number in pairs:
        factor = number.scalar
        if factor is not None and np.isfinite(factor) and factor != 0:
            return tensor, float(factor) if op.name == "multiply" else 1.0 / float(factor)
    return None


def _through(view: View, source: View) -> View | None:
    """A view of an elementwise result as the same view of its operand."""
    composed = compose(view, source)
    return None if composed is view else composed
