# SPDX-License-Identifier: Apache-2.0
"""Open sizes, and conditions on them, as texts that a saved model keeps: they are read, never run as code."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import FrontendError
from .open_size import OpenSize
from .size_condition import Condition
from .symbolic_shapes import Sizes, parsed, symbols_of, value_at, value_of

#: What compares two sizes, in Python's words and as a function.
_COMPARED: dict[type[ast.AST], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLED: dict[str, Callable[[int, int], bool]] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Lt": operator.lt,
    "Le": operator.le,
    "Gt": operator.gt,
    "Ge": operator.ge,
}
#: Quotients and remainders, as conditions have them and as `sizes.symbolic_shapes` reads them.
_PARTS = {"div(": "FloorDiv(", "mod(": "Mod("}
#: The one key of a mapping that stands for an open size in JSON.
_KEY = "size"


class SizeText:
    """An open size as a text: of a loaded model, or of one kernel."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeText) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _said(text: str) -> str:
    return re.sub(r"\b(div|mod)\(", lambda found: _PARTS[found.group()], text)


def size_text(size: OpenSize | SizeText | int | str) -> str:
    """A size as `sizes.symbolic_shapes.value_of` reads it."""
    return _said(str(size))


def condition_text(condition: Condition) -> str:
    """A condition as `holds` reads it."""
    return _said(str(condition))


def in_texts(value: Any) -> Any:
    """Data for JSON, with texts for its open sizes."""
    if isinstance(value, OpenSize):
        return {_KEY: size_text(value)}
    if isinstance(value, SizeText):
        return {_KEY: value.text}
    if isinstance(value, Mapping):
        return {key: in_texts(part) for key, part in value.items()}
    return [in_texts(part) for part in value] if isinstance(value, list | tuple) else value


def from_texts(value: Any) -> Any:
    """The inverse of `in_texts`: open sizes are `SizeText`."""
    if isinstance(value, dict):
        if set(value) == {_KEY} and isinstance(value[_KEY], str):
            return SizeText(value[_KEY])
        return {key: from_texts(part) for key, part in value.items()}
    return [from_texts(part) for part in value] if isinstance(value, list) else value


def number(size: Any, sizes: Sizes) -> Any:
    """What a size is for these numbers; a number is itself, and so is a size that the model finds."""
    if isinstance(size, OpenSize):
        return size.space.value(size, sizes) if size.names <= sizes.keys() else size
    if isinstance(size, SizeText):
        return value_of(size.text, sizes) if sizes.keys() >= set(symbols_of(size.text)) else size
    return size


def holds(text: str, sizes: Sizes) -> bool:
    """Whether a condition holds for these sizes.

    Parameters
    ----------
    text : str
        Comparisons of sizes (`sizes.symbolic_shapes`), joined by ``and``, ``or``, ``not``, or as sympy
        writes them: ``Eq(n, 4)``, ``(n > 2) & (m > 2)``.
    sizes : mapping of str to int

    Raises
    ------
    FrontendError
        It is no such condition.
    """
    return _truth(parsed(text), sizes, text)


def names_in(text: str) -> tuple[str, ...]:
    """The symbols in a condition that `holds` reads, in its order: no words of its own."""
    words = {*_CALLED, "And", "Or", "Not", "and", "or", "not", "True", "False"}
    return tuple(name for name in symbols_of(text) if name not in words)


def readable(text: str, names: tuple[str, ...]) -> bool:
    """Whether `holds` reads a condition, and it has no other names than these."""
    if not set(names_in(text)) <= set(names):
        return False
    try:
        holds(text, dict.fromkeys(names, 2))
    except FrontendError:
        return False
    except ZeroDivisionError:  # of sizes that other conditions exclude
        return True
    return True


def _truth(node: ast.expr, sizes: Sizes, text: str) -> bool:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Compare) and all(type(each) in _COMPARED for each in node.ops):
        values = [value_at(each, sizes, text) for each in (node.left, *node.comparators)]
        rows = zip(node.ops, values[:-1], values[1:], strict=True)
        return all(_COMPARED[type(each)](left, right) for each, left, right in rows)
    if isinstance(node, ast.BoolOp):
        parts = (_truth(each, sizes, text) for each in node.values)
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        parts = (_truth(each, sizes, text) for each in (node.left, node.right))
        return all(parts) if isinstance(node.op, ast.BitAnd) else any(parts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        return not _truth(node.operand, sizes, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _CALLED and len(node.args) == 2:
            return _CALLED[name](*[value_at(each, sizes, text) for each in node.args])
        if name in ("And", "Or", "Not"):
            truths = [_truth(each, sizes, text) for each in node.args]
            return {"And": all, "Or": any, "Not": lambda found: not any(found)}[name](truths)
    raise FrontendError(
        f"The condition {text!r} is none that is known.",
        need="comparisons of whole numbers and symbols, joined by and, or, not",
        remedy="compile the model again",
    )
