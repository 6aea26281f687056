# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch that choose among elements, and raise where there are none.

It is asked before they are taken apart: of what comes out, a maximum of nothing is the least number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from ..sizes.size_space import SizeSpace
from .element_needs import need_elements
from .torch_graph import arguments, describe, target_name
from .torch_known_sizes import known

aten = torch.ops.aten


def _axes(node: fx.Node, rank: int) -> list[int]:
    """The axes that a call names; all where it names none."""
    dim = arguments(node, "self", "dim").get("dim")
    if dim is None or dim == []:
        return list(range(rank))
    return list(dim) if isinstance(dim, list | tuple) else [dim]


def _all(_node: fx.Node, rank: int) -> list[int]:
    return list(range(rank))


def _last(node: fx.Node, _rank: int) -> list[int]:
    return [arguments(node, "self", "dim").get("dim", -1)]


def _kth(node: fx.Node, _rank: int) -> list[int]:
    return [arguments(node, "self", "k", "dim").get("dim", -1)]


def _norm(node: fx.Node, rank: int) -> list[int]:
    """Norms that are an extreme, or a quotient by a sum; others of nothing are 0."""
    given = arguments(node, "self", "ord", "dim")
    order = given.get("ord", 2)
    if not 0 <= order < math.inf:
        dim = given.get("dim")
        return list(range(rank)) if dim is None else list(dim) if isinstance(dim, list | tuple) else [dim]
    return []


#: The axes among whose elements an operator chooses, of a call and its operand's rank.
CHOOSING: dict[Any, Callable[[fx.Node, int], list[int]]] = {
    aten.amax.default: _axes,
    aten.amin.default: _axes,
    aten.aminmax.default: _axes,
    aten.argmax.default: _axes,
    aten.argmin.default: _axes,
    aten.max.default: _all,
    aten.max.dim: _axes,
    aten.min.default: _all,
    aten.min.dim: _axes,
    aten.median.dim: _axes,
    aten.nanmedian.dim: _axes,
    aten.mode.default: _last,
    aten.kthvalue.default: _kth,
    aten.linalg_vector_norm.default: _norm,
}


def check_choices(program: ExportedProgram, space: SizeSpace | None = None) -> None:
    """Hold the sizes that such operators reduce to at least one element.

    Parameters
    ----------
    program : ExportedProgram
    space : SizeSpace, optional
        Of a program with symbols, whose found sizes have names by now.

    Raises
    ------
    SizeError
        A size is 0.
    """
    for node in program.graph.nodes:
        axes = CHOOSING.get(node.target) if node.op == "call_function" else None
        if axes is None:
            continue
        value = node.args[0].meta["val"]
        shape = tuple(_size(size, space) for size in value.shape)
        if shape:
            need_elements(target_name(node), shape, axes(node, len(shape)), describe(node))


def _size(size: Any, space: SizeSpace | None) -> Any:
    size = known(size)
    return size if isinstance(size, int) or space is None else space.said(str(size.node.expr))
