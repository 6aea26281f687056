# SPDX-License-Identifier: Apache-2.0
"""Groups of operators that are one known function: recognised, and replaced by it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from tvm import relax

from .program import Op, Program, Value, View


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


#: Relative distance of a number from its nearest one of a type: half a unit in the last place; of wider types
#: what writing the number out may have lost.
ROUNDED = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def _is(view: View, number: float) -> bool:
    """Whether a view is this number everywhere, as its type has it."""
    found, near = view.scalar, ROUNDED.get(view.base.dtype, 1e-6)
    return isinstance(found, int | float) and math.isclose(found, number, rel_tol=near, abs_tol=0.0)


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


def _maximum(view: View) -> View | None:
    """What a view is the maximum of, along some axes."""
    op = view.base.producer
    return op.operands[0] if op is not None and op.name == "max" else None


def _seen(condition: View) -> View | None:
    """The flags of which the condition asks whether any is set: max(where(flags, 1, 0)) > 0."""
    op = condition.base.producer
    if op is None or op.name != "greater" or not _is_zero(op.operands[1]):
        return None
    flags = _maximum(op.operands[0])
    select = producer(flags, "where") if flags is not None else None
    if select is None or not _is(select.operands[1], 1.0) or not _is_zero(select.operands[2]):
        return None
    return select.operands[0]


def _mask_by_maximum(condition: View) -> Value | None:
    """The mask in max(mask) > -inf."""
    op = condition.base.producer
    if op is None or op.name not in ("greater", "not_equal") or not _is_minus_infinity(op.operands[1]):
        return None
    mask = _maximum(op.operands[0])
    return mask.base if mask is not None else None


def _closes(condition: View, mask: View) -> bool:
    """Whether the condition is false exactly where a whole row of this mask is -inf."""
    if _mask_by_maximum(condition) is mask.base:
        return True
    seen = _seen(condition)
    if seen is None:
        return False
    select = mask.base.producer
    if select is not None and select.name == "where":  # where(seen, 0, -inf)
        same = select.operands[0].base is seen.base
        return same and _is_zero(select.operands[1]) and _is_minus_infinity(select.operands[2])
    compare = seen.base.producer  # mask != -inf
    return (
        compare is not None
        and compare.name == "not_equal"
        and compare.operands[0].base is mask.base
        and _is_minus_infinity(compare.operands[1])
    )


def _masks(score: View) -> list[View]:
    """Terms of a sum that may be its mask."""
    op = producer(score, "add")
    return [] if op is None else list(op.operands)


def safe_softmax(program: Program) -> None:
    """where(row is open, softmax(score + mask) @ v, 0) -> safe_softmax(score + mask) @ v.

    A row whose scores are all -inf has no softmax: the programs that export attention replace what follows
    from it by zeros.  A softmax that gives zeros for such a row makes the replacement needless (finite v).
    """
    counts = reading_counts(program)
    for select in list(program.ops):
        if select.name != "where" or not _is_zero(select.operands[2]):
            continue
        condition, attended, _ = select.operands
        matmul = producer(attended, "matmul")
        if matmul is None or counts[matmul.result] != 1:
            continue
        softmax = producer(matmul.operands[0], "nn.softmax")
        if softmax is None or softmax.call is None or counts[softmax.result] != 1:
            continue
        along_rows = int(softmax.call.attrs.axis) in (-1, len(softmax.shape) - 1)
        if along_rows and any(_closes(condition, mask) for mask in _masks(softmax.operands[0])):
            softmax.name = "uir.safe_softmax"
            program.replace_value(select.result, matmul.result.view())
    program.remove_dead()
