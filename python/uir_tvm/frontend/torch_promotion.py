# SPDX-License-Identifier: Apache-2.0
"""PyTorch's promotion of dtypes, made explicit: operands of elementwise operators in the dtype of the result.

TVM's importer promotes two tensors by their dtypes alone. It does not know that a tensor of rank 0, or a
number, takes part by its category only, nor that functions of real numbers take integers as the default
float; of some operators it promotes nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from .torch_graph import target_name
from .torch_opaque import is_complex

aten = torch.ops.aten

#: Elementwise operators whose operands keep their dtypes: they ask or move, or take several kinds.
UNCHANGED = frozenset(
    {
        "isnan",
        "isinf",
        "isfinite",
        "logical_not",
        "_to_copy",
        "clone",
        "copy",
        "fill",
        "where",
        "alias",
        "prelu",
    }
)
#: Elementwise operators that PyTorch does not tag as such.
UNTAGGED = frozenset({"floor_divide"})
#: They ask whether numbers are zero.
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})


def promote(program: ExportedProgram) -> None:
    """Insert the casts that PyTorch makes inside of its elementwise operators.

    Before: ``add(int32[3], float16[])``. After: ``add(_to_copy(int32[3], float16), float16[])``.
    """
    graph = program.graph
    for node in list(graph.nodes):
        result = node.meta.get("val") if node.op == "call_function" else None
        if not isinstance(result, torch.Tensor) or is_complex(node):
            continue
        operator = target_name(node).partition(".")[0]
        if operator in LOGICAL:
            for source in node.all_input_nodes:
                _cast(graph, node, source, torch.bool)
        elif operator in ("cat", "where"):
            sources = node.args[0] if operator == "cat" else node.args[1:]
            for source in sources:
                _cast(graph, node, source, result.dtype)
        elif operator not in UNCHANGED and (
            torch.Tag.pointwise in getattr(node.target, "tags", ()) or operator in UNTAGGED
        ):
            dtype = result.dtype if result.dtype != torch.bool else _compared(node)
            for source in node.all_input_nodes:
                _cast(graph, node, source, dtype)
            node.args = tuple(_wrapped(arg, dtype) for arg in node.args)
    graph.lint()


def _wrapped(arg: Any, dtype: torch.dtype) -> Any:
    """A whole number beyond an unsigned dtype as PyTorch casts it: -3 in uint8 is 253."""
    if type(arg) is not int or dtype != torch.uint8:
        return arg
    return arg % (torch.iinfo(dtype).max + 1)


def _compared(node: fx.Node) -> torch.dtype:
    """The dtype in which a comparison's operands meet."""
    operands: list[Any] = [arg.meta["val"] if isinstance(arg, fx.Node) else arg for arg in node.args[:2]]
    known: list[Any] = [arg for arg in operands if isinstance(arg, torch.Tensor | bool | int | float)]
    dtype: torch.dtype = torch.result_type(*known) if len(known) > 1 else known[0].dtype
    return dtype


def _cast(graph: fx.Graph, user: fx.Node, source: Any, dtype: torch.dtype) -> None:
    """Let an operator read a tensor in another dtype."""
    value = source.meta.get("val") if isinstance(source, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.dtype == dtype:
        return
    with graph.inserting_before(user):
        if dtype == torch.bool:  # Relax has no cast to bool that asks: 0.5 would be false
            cast = graph.call_function(aten.ne.Scalar, (source, 0))
        else:
            cast = graph.call_function(aten._to_copy.default, (source,), {"dtype": dtype})
    cast.meta["val"] = value.to(dtype)
    user.replace_input_with(source, cast)
