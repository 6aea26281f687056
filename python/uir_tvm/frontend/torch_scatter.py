# SPDX-License-Identifier: Apache-2.0
"""Converters of what writes at indices along an axis."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import fx
from tvm import relax

from .relax_view import dtype_of, shape_of
from .torch_graph import arguments

#: PyTorch's reductions -> those of Relax.
REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def scatter(reduction: str, node: fx.Node, importer: Any) -> relax.Expr:
    """Write or reduce a source, or one number, into elements along an axis."""
    given = arguments(node, "x", "dim", "index", "source", "reduce")
    x, index = importer.env[given["x"]], importer.env[given["index"]]
    source = given.get("source", given.get("src", given.get("value")))
    emit = importer.block_builder.emit
    if isinstance(source, fx.Node):
        source = importer.env[source]
    else:
        shape = shape_of(index)
        source = emit(relax.op.full(shape, relax.const(source, dtype_of(x)), dtype_of(x)))
    reduction = REDUCTIONS.get(str(given.get("reduce")), reduction)
    return emit(relax.op.scatter_elements(x, index, source, int(given["dim"]), reduction))


SCATTERS: dict[str, Callable[[fx.Node, Any], relax.Expr]] = {
    "scatter.src": partial(scatter, "update"),
    "scatter.value": partial(scatter, "update"),
    "scatter_add.default": partial(scatter, "add"),
    "scatter_reduce.two": partial(scatter, "add"),
}
