# SPDX-License-Identifier: Apache-2.0
"""Slices that begin where a tensor says, as indices: PyTorch makes numbers of such tensors at run time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram

from .torch_decompositions import decomposed
from .torch_found import found_nodes
from .torch_graph import drop_assertions, target_name

#: What makes a number of a tensor, before and after operators are taken apart.
NUMBERS = ("item.default", "_local_scalar_dense.default")


def placed(program: ExportedProgram, in_torch: Mapping[Any, Any]) -> ExportedProgram:
    """A program whose slices begin where tensors say (``x[:, p:p + n]``, ``p = place.item()``), by indices.

    Before: ``slice_scatter(x, y, 1, item(p), item(p) + n)``.  After: ``scatter(x, 1, p + arange(n), y)``.
    The program itself where its numbers decide more than that.
    """
    if not any(target_name(node) in NUMBERS for node in found_nodes(program)):
        return program
    made = decomposed(program, in_torch)
    found = _Places(made.graph)
    for node in list(made.graph.nodes):
        rewrite = found.rules.get(target_name(node)) if node.op == "call_function" else None
        if rewrite is not None:
            with made.graph.inserting_before(node):
                indexed = rewrite(node)
            if indexed is not None:
                node.replace_all_uses_with(indexed)
                made.graph.erase_node(node)
    drop_assertions(made)
    return program if found_nodes(made) else made


class _Places:
    """Rewrites of one graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.rules: dict[str, Any] = {
            "slice_scatter.default": self._slice_scatter,
            "slice.Tensor": self._slice,
            "select.int": self._select,
        }

    def _emit(self, target: Any, *args: Any) -> fx.Node:
        """A call, with the value that it has of tensors without numbers."""
        values = fx.map_arg(args, lambda node: node.meta["val"])
        made = self.graph.call_function(target, args)
        made.meta["val"] = target(*values)
        return made

    def _tensor(self, number: Any) -> fx.Node | int | None:
        """A number that tensors hold, as an int64 tensor of no dimension; None where it is none."""
        if isinstance(number, int):
            return number
        if not isinstance(number, fx.Node) or number.op != "call_function":
            return None
        name = target_name(number)
        if name == "_local_scalar_dense.default":
            value = self._emit(torch.ops.aten.view.default, number.args[0], [])
            return value if value.meta["val"].dtype == torch.int64 else self._widened(value)
        operator = {"add": torch.ops.aten.add.Tensor, "sub": torch.ops.aten.sub.Tensor}.get(name)
        if operator is None:
            return None
        sides = [self._tensor(side) for side in number.args]
        if any(side is None for side in sides) or not isinstance(sides[0], fx.Node):
            sides = sides[::-1] if name == "add" else []
        if len(sides) != 2 or not isinstance(sides[0], fx.Node) or sides[1] is None:
            return None
        return self._emit(operator, *sides)

    def _widened(self, value: fx.Node) -> fx.Node:
        made = self.graph.call_function(torch.ops.aten._to_copy.default, (value,), {"dtype": torch.int64})
        made.meta["val"] = value.meta["val"].to(torch.int64)
        return made

    def _indices(self, start: Any, count: int, like: fx.Node) -> fx.Node | None:
        """``start + arange(count)``."""
        first = self._tensor(start) if isinstance(start, fx.Node) else None
        if not isinstance(first, fx.Node):
            return None
        steps = self.graph.call_function(
            torch.ops.aten.arange.start_step, (0, count, 1), {"dtype": torch.int64}
        )
        steps.meta["val"] = like.meta["val"].new_empty((count,), dtype=torch.int64)
        return self._emit(torch.ops.aten.add.Tensor, steps, first)

    def _scattered(self, x: fx.Node, axis: int, index: fx.Node, source: fx.Node) -> fx.Node:
        shape = [int(size) for size in source.meta["val"].shape]
        row = self._emit(
            torch.ops.aten.view.default, index, [-1 if at == axis else 1 for at in range(len(shape))]
        )
        whole = self._emit(torch.ops.aten.expand.default, row, shape)
        return self._emit(torch.ops.aten.scatter.src, x, axis, whole, source)

    def _slice_scatter(self, node: fx.Node) -> fx.Node | None:
        x, source, dim, start, _, step = _given(node, 2)
        shape = source.meta["val"].shape
        axis = int(dim) % len(shape)
        index = self._indices(start, int(shape[axis]), x) if step == 1 else None
        return None if index is None else self._scattered(x, axis, index, source)

    def _slice(self, node: fx.Node) -> fx.Node | None:
        x, dim, start, _, step = _given(node, 1)
        axis = int(dim) % x.meta["val"].dim()
        count = node.meta["val"].shape[axis]
        if not isinstance(count, int) or step != 1:
            return None
        index = self._indices(start, count, x)
        return None if index is None else self._emit(torch.ops.aten.index_select.default, x, axis, index)

    def _select(self, node: fx.Node) -> fx.Node | None:
        x, dim, place = _given(node, 3)
        axis = int(dim) % x.meta["val"].dim()
        index = self._indices(place, 1, x)
        if index is None:
            return None
        taken = self._emit(torch.ops.aten.index_select.default, x, axis, index)
        return self._emit(torch.ops.aten.squeeze.dims, taken, [axis])


def _given(node: fx.Node, needed: int) -> tuple[Any, ...]:
    """The arguments of a slice: those without default, then dimension, start, end and step."""
    missing: tuple[Any, ...] = (0, None, None, 1) if needed < 3 else ()
    return (*node.args, *missing[len(node.args) - needed :])
