# SPDX-License-Identifier: Apache-2.0
"""Sizes of a program as polynomials: texts that say the same become one, and add up."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable

from ..errors import FrontendError, IGraphError
from ..igraph.affine import Affine, affine, var
from ..sizes.saved_sizes import size_text
from ..sizes.symbolic_shapes import Size, parsed


def polynomial(size: Size) -> Affine | None:
    """A size as an expression that adds up; None of what is none, as a quotient by another size."""
    if isinstance(size, int):
        return affine(size)
    try:
        return _of(parsed(size_text(size)))
    except (FrontendError, IGraphError):
        return None


def total(sizes: Iterable[Size]) -> Affine | None:
    """The sum of sizes; None where one is no polynomial."""
    found: Affine | None = affine(0)
    for size in sizes:
        value = polynomial(size)
        found = None if value is None or found is None else found + value
    return found


def product(sizes: Iterable[Size]) -> Affine | None:
    """The product of sizes; None where it is no polynomial."""
    values = [polynomial(size) for size in sizes]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    try:
        return functools.reduce(lambda one, other: one * other, known, affine(1))
    except IGraphError:
        return None


def text_of(value: Affine | None) -> str:
    """An expression as Python writes it; empty for none."""
    return "" if value is None else str(value).replace(" / ", " // ")


def _of(node: ast.expr) -> Affine | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return affine(node.value)
    if isinstance(node, ast.Name):
        return var(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inside = _of(node.operand)
        return None if inside is None else -inside
    if isinstance(node, ast.BinOp):
        sides, word = [node.left, node.right], type(node.op).__name__
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        sides, word = list(node.args), node.func.id
    else:
        return None
    left, right = map(_of, sides)
    if left is None or right is None:
        return None
    if word in ("Add", "Sub", "Mult"):
        return left + right if word == "Add" else left - right if word == "Sub" else left * right
    if word in ("FloorDiv", "Mod") and right.is_constant and right.constant > 0:
        return left // int(right.constant) if word == "FloorDiv" else left % int(right.constant)
    return None
