# SPDX-License-Identifier: Apache-2.0
"""Converters of PyTorch's sorts: equal elements in their order, NaN as the largest number."""

from __future__ import annotations

from typing import Any

from torch import fx
from tvm import relax

from .relax_view import shape_of
from .sorting import SortOrder, sort_call
from .torch_graph import arguments


def sort(node: fx.Node, importer: Any) -> relax.Expr:
    """Sorted values and their indices."""
    x = importer.env[node.args[0]]
    stable = "stable" in node.kwargs or str(node.target).endswith("stable")
    names = ("stable", "dim", "descending") if stable else ("dim", "descending")
    given = arguments(node, "x", *names)
    return _picked(importer, x, int(given.get("dim", -1)), bool(given.get("descending", False)), None)


def topk(node: fx.Node, importer: Any) -> relax.Expr:
    """The k largest or smallest in order, and their indices; k may be a size that the model finds."""
    x = importer.env[node.args[0]]
    given = arguments(node, "x", "k", "dim", "largest")
    count = importer.env[given["k"]] if isinstance(given["k"], fx.Node) else int(given["k"])
    return _picked(importer, x, int(given.get("dim", -1)), bool(given.get("largest", True)), count)


def _picked(importer: Any, x: relax.Expr, dim: int, descending: bool, count: Any) -> relax.Expr:
    shape = shape_of(x)
    assert shape is not None
    if not shape:
        return relax.Tuple([x, relax.const(0, "int64")])
    both = importer.block_builder.emit(sort_call(x, SortOrder(dim % len(shape), descending), count))
    return relax.Tuple([relax.TupleGetItem(both, 0), relax.TupleGetItem(both, 1)])


SORTS = {"sort.default": sort, "sort.stable": sort, "topk.default": topk}
