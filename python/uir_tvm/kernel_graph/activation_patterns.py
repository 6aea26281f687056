# SPDX-License-Identifier: Apache-2.0
"""Activations that models write as several operators, recognised where a library can apply them as one."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import attrs

from .patterns import commuted, producer, same_view
from .program import Op, Value, View


@attrs.frozen
class KnownFunction:
    """A function of one value, with its parameters.

    Attributes
    ----------
    name : str
        A key of `LibraryTable.activations`.
    argument : View
        What it is computed of.
    parameters : tuple of float
        As `library.reference.PARAMETRIC` says.
    """

    name: str
    argument: View
    parameters: tuple[float, ...] = ()


def _number(view: View) -> float | None:
    found: Any = view.scalar
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _with_number(op: Op) -> tuple[View, float] | None:
    """x and c of an operator on x and a number, whichever comes first."""
    for x, other in commuted(op):
        number = _number(other)
        if number is not None and _number(x) is None:
            return x, number
    return None


def _made(view: View, *names: str) -> Op | None:
    return next((op for name in names if (op := producer(view, name)) is not None), None)


def clip(op: Op) -> KnownFunction | None:
    """minimum(maximum(x, low), high), or the other way round."""
    outer = _with_number(op)
    inner = None if outer is None else _made(outer[0], "maximum" if op.name == "minimum" else "minimum")
    found = None if inner is None else _with_number(inner)
    if outer is None or found is None:
        return None
    low, high = (found[1], outer[1]) if op.name == "minimum" else (outer[1], found[1])
    return KnownFunction("clip", found[0], (low, high)) if low <= high else None


def _scaled(op: Op) -> tuple[View, float] | None:
    """x and c of x * c or x / (1 / c)."""
    if op.name == "multiply":
        return _with_number(op)
    divisor = _number(op.operands[1]) if op.name == "divide" else None
    return (op.operands[0], 1 / divisor) if divisor and _number(op.operands[0]) is None else None


def _line(view: View) -> tuple[View, float, float]:
    """x, a and b of a * x + b; x itself where it is nothing else."""
    add = producer(view, "add")
    sum_of = None if add is None else _with_number(add)
    x, term = (view, 0.0) if sum_of is None else sum_of
    made = _made(x, "multiply", "divide")
    product = None if made is None else _scaled(made)
    return (x, 1.0, term) if product is None else (*product, term)


def _gate(op: Op, scale: float) -> tuple[View, float, float] | None:
    """x, a and b where the operator is a clip that, times the scale, is a * x + b between 0 and 1."""
    found = clip(op)
    if found is None or found.parameters[0] != 0 or abs(found.parameters[1] * scale - 1) > 1e-6:
        return None
    x, factor, term = _line(found.argument)
    return x, factor * scale, term * scale


def _scaled_clip(op: Op) -> tuple[Op, float] | None:
    """The clip and its factor, of which there may be none."""
    if op.name in ("minimum", "maximum"):
        return op, 1.0
    scaled = _scaled(op)
    made = None if scaled is None else _made(scaled[0], "minimum", "maximum")
    return None if scaled is None or made is None else (made, scaled[1])


def hard_sigmoid(op: Op) -> KnownFunction | None:
    """Between 0 and 1, of a line: clip(a * x + b, 0, c) / c."""
    inner = _scaled_clip(op)
    found = None if inner is None else _gate(*inner)
    if found is None or found[1:] == (1.0, 0.0):  # of x itself: a clip
        return None
    return KnownFunction("hard_sigmoid", found[0], found[1:])


def hard_swish(op: Op) -> KnownFunction | None:
    """x times a hard sigmoid of x, however the factor 1 / c is grouped."""
    for x, gate in commuted(op) if op.name == "multiply" else ():
        made = _made(gate, "multiply", "divide", "minimum", "maximum")
        found = None if made is None else hard_sigmoid(made)
        if found is not None and same_view(found.argument, x):
            return KnownFunction("hard_swish", x, found.parameters)
    scaled = _scaled(op)
    product = None if scaled is None else producer(scaled[0], "multiply")
    if scaled is None or product is None:
        return None
    for x, gate in commuted(product):
        made = _made(gate, "minimum", "maximum")
        line = None if made is None else _gate(made, scaled[1])
        if line is not None and same_view(line[0], x):
            return KnownFunction("hard_swish", x, line[1:])
    return None


def leaky_relu(op: Op) -> KnownFunction | None:
    """x below 0 times a slope."""
    assert op.call is not None
    return KnownFunction("leaky_relu", op.operands[0], (float(op.call.attrs.alpha),))


def relu6(op: Op) -> KnownFunction | None:
    """A clip as Relax's operator of its own."""
    return KnownFunction("clip", op.operands[0], (0.0, 6.0))


#: Last operator of a pattern -> patterns, the longest first.
PATTERNS: dict[str, tuple[Callable[[Op], KnownFunction | None], ...]] = {
    "nn.leakyrelu": (leaky_relu,),
    "nn.relu6": (relu6,),
    "multiply": (hard_swish, hard_sigmoid),
    "divide": (hard_swish, hard_sigmoid),
    "minimum": (hard_sigmoid, clip),
    "maximum": (hard_sigmoid, clip),
}
#: Operators of the longest pattern.
LONGEST = 6


def activation_of(
    value: Value, users: dict[Value, list[tuple[Op, int]]], kept: set[Value]
) -> tuple[KnownFunction, Op, set[Op]] | None:
    """The activation that all readers of a value together are; of several the longest.

    Parameters
    ----------
    value : Value
    users : dict
        Readers of every value.
    kept : set of Value
        Values that must be written whatever reads them.

    Returns
    -------
    tuple, optional
        The function, the operator that gives its result, and all operators of it.  None where readers are
        something else, or where what is between is read from elsewhere.
    """
    longest = None
    reached: list[Op] = [reader for reader, _ in users.get(value, ())]
    for op in reached:  # grows on the way
        if len(reached) > LONGEST:
            break
        for pattern in PATTERNS.get(op.name, ()):
            found = pattern(op)
            if found is None or found.argument.base is not value or not found.argument.is_whole:
                continue
            inside = _between(value, op)
            if all(
                reader in inside
                for made in (value, *(o.result for o in inside if o is not op))
                for reader, _ in users.get(made, ())
            ) and not any(o.result in kept for o in inside if o is not op):
                longest = found, op, inside
                break
        reached += [r for result in op.results for r, _ in users.get(result, ()) if r not in reached]
    return longest


def ends_activation(op: Op, names: Container[str]) -> bool:
    """Whether an operator is the last of an activation of what a library computes, bias included.

    Parameters
    ----------
    op : Op
    names : container of str
        Activations that the library applies.
    """
    for pattern in PATTERNS.get(op.name, ()):
        found = pattern(op)
        if found is None or found.name not in names or not found.argument.is_whole:
            continue
        made = found.argument.base.producer
        if made is None:
            continue
        terms = [view.base.producer for view in made.operands] if made.name == "add" else []
        if any(term is not None and term.name.startswith("library.") for term in (made, *terms)):
            return True
    return False


def _between(value: Value, last: Op) -> set[Op]:
    """What is computed on the way from a value to an operator, that one included."""
    found: set[Op] = set()
    waiting = [last]
    while waiting:
        op = waiting.pop()
        found.add(op)
        for view in op.operands:
            made = view.base.producer
            if view.base is not value and made is not None and made not in found:
                waiting.append(made)
    return found
