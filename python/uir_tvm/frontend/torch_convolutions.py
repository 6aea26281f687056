# SPDX-License-Identifier: Apache-2.0
"""The converter of PyTorch's convolutions, of every rank, direction and dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx
from tvm import relax

from .relax_view import dtype_of, shape_of
from .torch_graph import each

#: (transposed, axes of space) -> operator.
OPERATORS: dict[tuple[bool, int], Callable[..., relax.Expr]] = {
    (False, 1): relax.op.nn.conv1d,
    (False, 2): relax.op.nn.conv2d,
    (False, 3): relax.op.nn.conv3d,
    (True, 1): relax.op.nn.conv1d_transpose,
    (True, 2): relax.op.nn.conv2d_transpose,
    (True, 3): relax.op.nn.conv3d_transpose,
}


def convolution(node: fx.Node, importer: Any) -> relax.Expr:
    """A convolution, of the dtype of its operands.

    TVM's converter sums every dtype in float32 and leaves the result so, and knows no transposed convolution
    of volumes. Narrow floats are summed in float32 too, and rounded before the bias, wherever kernels and
    libraries compute them (`uir_tvm.kernel_graph.legalize`).
    """
    x, weight, bias, strides, padding, dilation, transposed, output_padding, groups = importer.retrieve_args(
        node
    )
    shape, dtype = shape_of(x), str(dtype_of(x))
    assert shape is not None
    rank = len(shape) - 2
    window: dict[str, Any] = {"strides": strides, "padding": padding, "dilation": dilation}
    window = {name: each(value, rank) for name, value in window.items()} | {"groups": groups}
    if transposed:
        window["output_padding"] = each(output_padding, rank)
    emit = importer.block_builder.emit
    result = emit(OPERATORS[bool(transposed), rank](x, weight, **window, out_dtype=dtype))
    if bias is None:
        return result
    return emit(relax.op.add(result, relax.op.reshape(bias, (1, -1, *[1] * rank))))


CONVOLUTIONS = {"convolution.default": convolution}
