# SPDX-License-Identifier: Apache-2.0
"""Parts of axes of PyTorch's tensors: from the end, and between places that the model finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import tvm
from torch import fx
from tvm import relax

from ..sizes.open_arithmetic import is_open
from ..sizes.open_size import AnySize
from ..sizes.size_space import open_sizes
from .element_needs import need_as_many
from .open_expressions import expressions
from .relax_view import shape_of
from .torch_graph import arguments, target_name

if TYPE_CHECKING:
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

aten = torch.ops.aten


def size_of(size: Any) -> AnySize:
    """PyTorch's size, or a node that is one; of a symbol, inside `reading_open_sizes`, ours."""
    if isinstance(size, fx.Node):
        size = size.meta["val"]
    space = open_sizes()
    return size if space is None or isinstance(size, int) else space.said(str(size.node.expr))


def select(node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """x[..., i, ...], with i from the end where it is negative (TVM's converter reads before the tensor)."""
    source, axis, index = node.args[:3]
    assert isinstance(source, fx.Node) and isinstance(axis, int)
    shape, begin = tuple(map(size_of, source.meta["val"].shape)), size_of(index)
    if isinstance(index, int):
        need_as_many(target_name(node), shape, axis, -index if index < 0 else index + 1)
        begin = index + shape[axis] if index < 0 else index
    piece = _part(importer, source, axis, begin, 1)
    return importer.block_builder.emit(relax.op.squeeze(piece, [axis]))


def slice_of(stock: Callable[..., Any], node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """x[..., i:j, ...]; between places that are open sizes, the elements that PyTorch says there are."""
    given = arguments(node, "self", "dim", "start", "end", "step")
    source, axis = node.args[0], given.get("dim", 0)
    assert isinstance(source, fx.Node)
    start, end = given.get("start"), given.get("end")
    if given.get("step", 1) != 1 or not any(isinstance(each, fx.Node) for each in (start, end)):
        return stock("slice.Tensor", node, importer)  # type: ignore[no-any-return]
    begin, count = size_of(start or 0), size_of(node.meta["val"].shape[axis])
    if not is_open((begin, count)) or begin < 0:
        return stock("slice.Tensor", node, importer)  # type: ignore[no-any-return]
    return _part(importer, source, axis, begin, count)


def split(stock: Callable[..., Any], node: fx.Node, importer: ExportedProgramImporter) -> Any:
    """Parts of these sizes, one after the other."""
    given = arguments(node, "self", "split_sizes", "dim")
    source, counts = node.args[0], [size_of(each) for each in given["split_sizes"]]
    assert isinstance(source, fx.Node)
    if not is_open(counts):
        return stock("split_with_sizes.default", node, importer)
    axis, parts, begin = given.get("dim", 0), [], 0
    for count in counts:
        parts.append(_part(importer, source, axis, begin, count))
        begin = begin + count
    return parts


def meet_variables(importer: ExportedProgramImporter) -> None:
    """Let the inputs' variables be met: they are what sizes are said in."""
    space = open_sizes()
    for value in importer.env.values():
        if space is not None and not space.has_variables and isinstance(value, tvm.ir.Var):
            shape_of(value)


def _part(importer: Any, source: fx.Node, axis: int, begin: AnySize, count: AnySize) -> relax.Var:
    """So many elements of an axis from a place on, all of which are in it."""
    meet_variables(importer)
    low, high = (expressions([each]) for each in (begin, begin + count))
    within = is_open((begin, count))
    piece = relax.op.strided_slice(importer.env[source], [axis], low, high, assume_inbound=within)
    return importer.block_builder.emit(piece)
