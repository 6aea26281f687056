# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch whose data decide sizes: what is not zero, distinct values, a number in a tensor.

PyTorch computes them at run time. The sizes that they find have names in the program (``u0``); what follows
is compiled once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from tvm import tirx

from ..errors import FrontendError, ShapeError
from ..sizes.size_space import SizeSpace
from ..sizes.symbolic_shapes import Range
from .torch_graph import describe, target_name
from .torch_opaque import obstacle, opaque, operator_of

#: Begins the names of such operators in a program.
PREFIX = "found::"
REASON = "data decide the shape of its result"


class FoundOperator:
    """An operator that finds sizes, under a name of its own."""

    def __init__(self, operator: torch._ops.OpOverload) -> None:
        self.operator = operator
        self.__name__ = PREFIX + str(operator.__name__)
        self.__module__ = __name__
        self.tags = operator.tags

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.operator(*args, **kwargs)

    def __repr__(self) -> str:
        return self.__name__


def found_nodes(program: ExportedProgram) -> dict[fx.Node, tuple[Any, ...]]:
    """The nodes that find sizes, each with the symbols that no node before it has."""
    known = {
        symbol
        for node in program.graph.find_nodes(op="placeholder")
        for symbol in _symbols(node.meta.get("val"))
    }
    found: dict[fx.Node, tuple[Any, ...]] = {}
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        new = tuple(dict.fromkeys(s for s in _symbols(node.meta.get("val")) if s not in known))
        if new:
            known.update(new)
            found[node] = new
    return found


def environment_of(program: ExportedProgram) -> Any:
    """PyTorch's environment of the symbols that are found; None where none are."""
    sizes = (size for node in found_nodes(program) for size in _sizes(node.meta["val"]))
    return next((size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)), None)


def find_sizes(program: ExportedProgram, space: SizeSpace) -> None:
    """Name the operators of a program that find sizes, and the sizes in a space."""
    from .torch_symbols import range_of

    for node, symbols in found_nodes(program).items():
        operator = operator_of(node)
        if operator is None:
            raise refused(node)
        for symbol in symbols:
            ends: Range = (0, None)
            if symbol in program.range_constraints:
                ends = range_of(program.range_constraints[symbol], True)
            space.find(str(symbol), (max(0, ends[0]), ends[1]), tirx.Var(str(symbol), "int64"))
        node.target = FoundOperator(operator)


def refused(node: fx.Node) -> ShapeError:
    """The error of a program that is compiled in numbers alone."""
    value = node.meta.get("val")
    shapes = [tuple(str(size) for size in part.shape) for part in _tensors(value)]
    return ShapeError(
        f"the shape of {target_name(node)!r} depends on data",
        where=f"{describe(node)}, shape {', '.join(map(str, shapes))}" if shapes else describe(node),
        need="fixed shapes",
        remedy="use torch.where, or a mask as a factor, in place of a selection of elements",
    )


def convert_found(node: fx.Node, importer: Any) -> Any:
    """A call of PyTorch at run time, whose results have the shapes that it finds.

    Raises
    ------
    FrontendError
        PyTorch cannot compute it for us.
    """
    why = obstacle(node)
    if why:
        raise FrontendError(
            f"{target_name(node)!r} finds sizes, and {why}",
            where=describe(node),
            need="an operator that PyTorch computes of tensors at run time",
            remedy="compute it outside of the model",
        )
    return opaque(REASON, node, importer)


def _tensors(value: Any) -> list[torch.Tensor]:
    parts = value if isinstance(value, list | tuple) else [value]
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _sizes(value: Any) -> Iterator[Any]:
    for part in value if isinstance(value, list | tuple) else [value]:
        if isinstance(part, torch.Tensor):
            yield from part.shape
        elif isinstance(part, torch.SymInt):
            yield part


def _symbols(value: Any) -> Iterator[Any]:
    """The symbols in the shapes of a node's results, or in its number."""
    for size in _sizes(value):
        if isinstance(size, torch.SymInt):
            yield from sorted(size.node.expr.free_symbols, key=str)
