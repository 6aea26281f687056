# SPDX-License-Identifier: Apache-2.0
"""Convolutions, plain, transposed and deformable."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tvm import relax, topi

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value
from .layout import relayout


def paddings(padding: Any, dims: int) -> list[int]:
    """Padding before and after every axis, of one number, one for each axis or two."""
    numbers = [padding] if isinstance(padding, int) else [int(n) for n in padding]
    return numbers * (2 * dims // len(numbers)) if len(numbers) in (1, dims) else numbers


def plain_convolution(operation: Callable[..., Any], plain: str) -> Callable[..., Value]:
    """``plain``: the layout of data that the operation is computed in; kernels have O and I in front."""
    return _converter(operation, plain, "OI" + plain[2:], _kernel)


def transposed_convolution(operation: Callable[..., Any], plain: str) -> Callable[..., Value]:
    """``plain``: the layout of data that the operation is computed in; kernels have I and O in front."""

    def kernel(c: ConversionContext, w: Value, source: str, target: str, _groups: int) -> Value:
        return relayout(c, w, source, target)

    return _converter(operation, plain, "IO" + plain[2:], kernel, "output_padding")


def _converter(
    operation: Callable[..., Any], plain: str, layout: str, kernel: Callable[..., Value], *more: str
) -> Callable[..., Value]:
    """A converter to ``operation``, which takes data as ``plain`` and kernels as ``layout``.

    Parameters
    ----------
    kernel : callable
        Brings a kernel to a layout: context, kernel, the layouts from and to, groups.
    more : str
        Attributes of one number a dimension that the operation takes too.
    """
    dims = len(plain) - 2

    def convert(c: ConversionContext, a: SimpleNamespace, x: Value, w: Value) -> Value:
        w = kernel(c, w, a.kernel_layout, layout, a.groups)
        data = relayout(c, x, a.data_layout, plain)
        out = a.out_dtype or dtype_of(x)
        if "int" in out:
            data, w = c.cast(data, out), c.cast(w, out)
        result = c.emit(
            operation(
                data,
                w,
                strides=list(a.strides),
                padding=paddings(a.padding, dims),
                dilation=list(a.dilation),
                groups=a.groups,
                data_layout=plain,
                kernel_layout=layout,
                out_dtype=out,
                **{name: list(getattr(a, name)) for name in more},
            )
        )
        return relayout(c, result, plain, a.out_layout or a.data_layout)

    return convert


def _kernel(c: ConversionContext, w: Value, source: str, target: str, groups: int) -> Value:
    """A kernel in another layout; HWOI of a depthwise one has its channels at O and their multiples at I."""
    w = relayout(c, w, source, target)
    shape = c.shape(w)
    if groups > 1 and source.index("O") > source.index("I") and shape[1] == groups:
        # HWIO with the channels at I: (multiples, channels, ...) -> (channels * multiples, 1, ...)
        w = c.permute(w, [1, 0, *range(2, len(shape))])
        w = c.reshape(w, [shape[0] * shape[1], 1, *shape[2:]])
    return w


def _deformable(c: ConversionContext, a: SimpleNamespace, x: Value, offset: Value, w: Value) -> Value:
    if a.data_layout != "NCHW":
        raise c.refuse(f"is in layout {a.data_layout}", "NCHW")
    out = a.out_dtype or dtype_of(x)
    sizes = (tuple(a.strides), tuple(paddings(a.padding, 2)), tuple(a.dilation))
    return c.kernel(topi.nn.deformable_conv2d_nchw, x, offset, w, *sizes, a.deformable_groups, a.groups, out)


TABLE = {
    "nn.conv1d": plain_convolution(relax.op.nn.conv1d, "NCW"),
    "nn.conv2d": plain_convolution(relax.op.nn.conv2d, "NCHW"),
    "nn.conv3d": plain_convolution(relax.op.nn.conv3d, "NCDHW"),
    "nn.conv1d_transpose": transposed_convolution(relax.op.nn.conv1d_transpose, "NCW"),
    "nn.conv2d_transpose": transposed_convolution(relax.op.nn.conv2d_transpose, "NCHW"),
    "nn.conv3d_transpose": transposed_convolution(relax.op.nn.conv3d_transpose, "NCDHW"),
    "nn.deformable_conv2d": _deformable,
}
