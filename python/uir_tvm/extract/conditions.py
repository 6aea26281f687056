# SPDX-License-Identifier: Apache-2.0
"""Conditions of statements: their parts, the loops and buffers that decide them, whether they always hold.

Iteration variables of blocks are bound to expressions; all look through these bindings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map, structural_walk

from ..schedule.blocks import conjuncts
from .tree_nodes import TreeLoop

__all__ = ["always", "conjuncts", "loaded", "substituted", "variables"]

#: Iterations for which a condition is looked at one by one (some 50 microseconds each).
MOST_ITERATIONS = 1024


def variables(expr: Any, bindings: Mapping[Any, Any]) -> set[Any]:
    """The variables of an expression, bound ones included."""
    found: set[Any] = set()

    def visit(node: Any) -> None:
        if isinstance(node, tvm.ir.Var) and node not in found:
            found.add(node)
            if node in bindings:
                structural_walk(bindings[node], visit)

    structural_walk(expr, visit)
    return found


def loaded(expr: Any, bindings: Mapping[Any, Any]) -> set[Any]:
    """The buffers that an expression loads from."""
    found: set[Any] = set()

    def load(node: Any) -> None:
        found.add(node.source)

    for part in (expr, *(bindings[v] for v in variables(expr, bindings) if v in bindings)):
        structural_walk(part, [(tvm.ir.TensorLoad, load)])
    return found


def substituted(expr: Any, values: Mapping[Any, Any], bindings: Mapping[Any, Any]) -> Any:
    """An expression with loop variables replaced."""

    def visit(var: Any) -> Any:
        if var in bindings:
            return substituted(bindings[var], values, bindings)
        return values.get(var, var)

    return structural_map(expr, (tvm.ir.Var, visit))


def always(condition: Any, loops: Sequence[TreeLoop], bindings: Mapping[Any, Any]) -> bool:
    """Whether a condition of loop variables holds for all their values, which must be few.

    Bounds of ragged windows are quotients of several kinds, of which no simplifier knows the signs.
    """
    used = variables(condition, bindings)
    own = [loop for loop in loops if loop.var in used]
    if len(own) < len(used) or math.prod(loop.extent for loop in own) > MOST_ITERATIONS:
        return False
    analyzer = tvm.sym.Analyzer()
    for place in itertools.product(*(range(loop.start, loop.start + loop.extent) for loop in own)):
        values = {
            loop.var: tirx.const(value, str(loop.var.ty)) for loop, value in zip(own, place, strict=True)
        }
        found = analyzer.simplify(substituted(condition, values, bindings))
        if not (isinstance(found, tirx.IntImm) and found.value):
            return False
    return True
