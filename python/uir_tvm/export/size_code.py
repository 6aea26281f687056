# SPDX-License-Identifier: Apache-2.0
"""Expressions of open sizes, and conditions on them, as C++ of a project's program.

A size is text as `sizes.symbolic_shapes` reads it (``n*d``, ``(n + 3) // 4``), as an open size is printed
(``div(n + 3, 4)``), or as an affine expression is (``((n + 3) / 4)``): quotients are rounded down in all of
them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..errors import ExportError
from ..sizes.symbolic_shapes import Size, parsed

#: What a size calls -> the function of the project's `sizes.h`.
_FUNCTIONS = {
    "div": "Div",
    "FloorDiv": "Div",
    "mod": "Mod",
    "Mod": "Mod",
    "min": "Min",
    "Min": "Min",
    "max": "Max",
    "Max": "Max",
}
#: The names of these functions, and of all else that the program's text has beside sizes.
FUNCTIONS = frozenset({*_FUNCTIONS.values(), "Blocks", "Int", "Need", "sizes", "blocks", "outer0", "outer1"})
#: Operators of two sizes -> C++, and how tightly they bind.
_OPERATORS: dict[type[ast.AST], tuple[str, int]] = {ast.Add: ("+", 1), ast.Sub: ("-", 1), ast.Mult: ("*", 2)}
_QUOTIENTS: dict[type[ast.AST], str] = {ast.FloorDiv: "Div", ast.Div: "Div", ast.Mod: "Mod"}
_COMPARED: dict[type[ast.AST], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_CALLED = {"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">="}
_JOINED = {"And": " && ", "Or": " || "}
#: Of a number or a name.
_ATOM = 3


def size_code(size: Size, names: Mapping[str, str]) -> str:
    """A size as C++.

    Parameters
    ----------
    size : int or str
    names : mapping of str to str
        What the program's text calls each symbol.

    Raises
    ------
    ExportError
        It is no expression that a project's program computes.
    """
    return str(size) if isinstance(size, int) else _code(parsed(size), names, size)[0]


def condition_code(text: str, names: Mapping[str, str]) -> str:
    """A condition (`sizes.saved_sizes.holds`) as C++.

    Raises
    ------
    ExportError
        It is none that a project's program decides.
    """
    return _truth(parsed(text), names, text)


def _code(node: ast.expr, names: Mapping[str, str], text: str) -> tuple[str, int]:
    """The text of a node, and how tightly it binds."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return str(node.value), _ATOM
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id], _ATOM
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inside, binds = _code(node.operand, names, text)
        return f"-{inside if binds > 1 else f'({inside})'}", 1
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        word, binds = _OPERATORS[type(node.op)]
        (left, outer), (right, inner) = (_code(side, names, text) for side in (node.left, node.right))
        left = left if outer >= binds else f"({left})"
        right = right if inner > binds or (inner == binds and word != "-") else f"({right})"
        return f"{left} {word} {right}", binds
    if isinstance(node, ast.BinOp) and type(node.op) in _QUOTIENTS:
        sides = ", ".join(_code(side, names, text)[0] for side in (node.left, node.right))
        return f"{_QUOTIENTS[type(node.op)]}({sides})", _ATOM
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        args = [_code(arg, names, text)[0] for arg in node.args]
        made = args[0]
        for other in args[1:]:
            made = f"{_FUNCTIONS[node.func.id]}({made}, {other})"
        return made, _ATOM
    raise _unreadable(text)


def _truth(node: ast.expr, names: Mapping[str, str], text: str) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return str(node.value).lower()
    if isinstance(node, ast.Compare) and all(type(each) in _COMPARED for each in node.ops):
        sides = [_code(each, names, text)[0] for each in (node.left, *node.comparators)]
        rows = zip(node.ops, sides[:-1], sides[1:], strict=True)
        return " && ".join(_compared(left, _COMPARED[type(op)], right) for op, left, right in rows)
    if isinstance(node, ast.BoolOp):
        word = " && " if isinstance(node.op, ast.And) else " || "
        return word.join(f"({_truth(each, names, text)})" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        word = " && " if isinstance(node.op, ast.BitAnd) else " || "
        return word.join(f"({_truth(each, names, text)})" for each in (node.left, node.right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        return f"!({_truth(node.operand, names, text)})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        name = node.func.id
        if name in _CALLED and len(node.args) == 2:
            left, right = (_code(each, names, text)[0] for each in node.args)
            return _compared(left, _CALLED[name], right)
        if name in _JOINED:
            return _JOINED[name].join(f"({_truth(each, names, text)})" for each in node.args)
        if name == "Not" and len(node.args) == 1:
            return f"!({_truth(node.args[0], names, text)})"
    raise _unreadable(text)


def _compared(left: str, word: str, right: str) -> str:
    """A comparison; of a size with itself, which compilers warn of, the answer."""
    if left == right:
        return str(word in ("==", "<=", ">=")).lower()
    return f"{left} {word} {right}"


def _unreadable(text: str) -> ExportError:
    return ExportError(
        f"{text!r} is nothing that a project's program computes of its sizes.",
        need="whole numbers, symbols, + - * // %, min and max, and comparisons of such",
        remedy="compile the model for the sizes of the project: --size NAME=37",
    )
