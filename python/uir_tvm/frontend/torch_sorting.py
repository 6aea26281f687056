# SPDX-License-Identifier: Apache-2.0
"""Converters of PyTorch's sorts: equal elements in their order, NaN as the largest number.

TVM's sorts compare by ``<`` and leave a row that holds a NaN in any order.  Narrower floats are sorted as
float64, where a finite number beyond all of theirs stands for an infinity and one further for NaN; float64 is
sorted twice, at last by whether an element is NaN.
"""

from __future__ import annotations

from typing import Any

from torch import fx
from tvm import relax

from .relax_view import dtype_of, shape_of
from .torch_graph import arguments

#: In float64, beyond every float32: what stands for an infinity, and for NaN.
INFINITE, MISSING = 1e299, 1e300


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
    emit, shape = importer.block_builder.emit, shape_of(x)
    assert shape is not None
    if not shape:
        return relax.Tuple([x, relax.const(0, "int64")])
    axis = dim % len(shape)
    index = _order(emit, x, axis, descending)
    if count is not None:
        index = emit(relax.op.strided_slice(index, [axis], [0], [count]))
    return relax.Tuple([emit(relax.op.gather_elements(x, index, axis)), index])


def _order(emit: Any, x: relax.Expr, axis: int, descending: bool) -> relax.Var:
    """Indices that sort."""

    def ordered(key: relax.Expr) -> relax.Var:
        return emit(relax.op.argsort(key, axis, descending, "int64"))

    dtype = dtype_of(x)
    if dtype == "bool":
        return ordered(emit(relax.op.astype(x, "int32")))
    if "float" not in str(dtype):
        return ordered(x)
    missing = emit(relax.op.isnan(x))
    if dtype == "float64":
        first = ordered(emit(relax.op.where(missing, relax.const(float("inf"), "float64"), x)))
        flags = emit(relax.op.astype(missing, "int32"))
        last = ordered(emit(relax.op.gather_elements(flags, first, axis)))
        return emit(relax.op.gather_elements(first, last, axis))
    wide = emit(relax.op.astype(x, "float64"))
    low, high, none = (relax.const(number, "float64") for number in (-INFINITE, INFINITE, MISSING))
    finite = emit(relax.op.maximum(emit(relax.op.minimum(wide, high)), low))
    return ordered(emit(relax.op.where(missing, none, finite)))


SORTS = {"sort.default": sort, "sort.stable": sort, "topk.default": topk}
