# SPDX-License-Identifier: Apache-2.0
"""Convolutions of sequences and volumes, and transposed ones, as those of images, which libraries have.

Sums are taken in another order than in TVM's own lowering, and a transposed convolution whose stride does not
divide its kernel multiplies by zeros too (docs/numerics.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import tvm
from tvm import relax

from ...sizes.open_arithmetic import is_open, same
from ..relax_view import Shape, dtype_of, shape_of
from .rewriter import Rewriter

#: Element types of convolutions in libraries; the others have kernels, which take each operator as it is.
DTYPES = frozenset({"float32", "float16", "bfloat16"})


def _numbers(values: Any) -> list[int]:
    return [int(value) for value in values]


def _usual(call: tvm.ir.Call, data: str, kernel: str) -> bool:
    """Whether layouts and types are those that are rewritten."""
    found = call.attrs
    layouts = (str(found.data_layout), str(found.kernel_layout), str(found.out_layout or found.data_layout))
    return layouts == (data, kernel, data) and {dtype_of(arg) for arg in (*call.args, call)} <= DTYPES


def _convolved(
    x: tvm.ir.Expr,
    weight: tvm.ir.Expr,
    call: tvm.ir.Call,
    strides: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    rewriter: Rewriter,
) -> tvm.ir.Expr:
    """A convolution of images with the groups and the result's type of another one."""
    return rewriter.emit(
        relax.op.nn.conv2d(
            x,
            weight,
            strides=tuple(strides),
            padding=tuple(padding),
            dilation=tuple(dilation),
            groups=int(call.attrs.groups),
            out_dtype=dtype_of(call),
        )
    )


def _padded(x: tvm.ir.Expr, axes: dict[int, tuple[int, int]], rewriter: Rewriter) -> tvm.ir.Expr:
    """Zeros before and behind some axes."""
    shape = shape_of(x)
    assert shape is not None
    widths = [side for axis in range(len(shape)) for side in axes.get(axis, (0, 0))]
    return rewriter.emit(relax.op.nn.pad(x, widths)) if any(widths) else x


def _row(shape: Shape) -> Shape:
    """The shape of a sequence as an image of one row."""
    return (*shape[:2], 1, *shape[2:])


def conv1d(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A convolution of sequences -> one of images of one row."""
    x, weight, target = *map(shape_of, call.args), shape_of(call)
    if x is None or weight is None or target is None or not _usual(call, "NCW", "OIW"):
        return None
    found = call.attrs
    left, right = _numbers(found.padding)
    made = _convolved(
        rewriter.reshape(call.args[0], _row(x)),
        rewriter.reshape(call.args[1], _row(weight)),
        call,
        (1, *_numbers(found.strides)),
        (0, left, 0, right),
        (1, *_numbers(found.dilation)),
        rewriter,
    )
    return rewriter.reshape(made, target)


def conv3d(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A convolution of volumes -> one of images, with the channels of all slices that the window covers."""
    x, weight, target = *map(shape_of, call.args), shape_of(call)
    if x is None or weight is None or target is None or not _usual(call, "NCDHW", "OIDHW"):
        return None
    found, groups = call.attrs, int(call.attrs.groups)
    (step, *strides), (far, *dilation) = _numbers(found.strides), _numbers(found.dilation)
    front, above, left, back, below, right = _numbers(found.padding)
    (n, channels, _, *image), (out, inner, depth, *window) = x, weight
    result = target[2]
    slices = rewriter.emit(relax.op.permute_dims(call.args[0], [0, 2, 1, 3, 4]))
    slices = _padded(slices, {1: (front, back)}, rewriter)
    parts = []
    for place in range(depth):
        begin = place * far
        end = begin + (result - 1) * step + 1
        part = rewriter.emit(relax.op.strided_slice(slices, [1], [begin], [end], [step]))
        parts.append(rewriter.reshape(part, (n, result, groups, 1, channels // groups, *image)))
    joined = parts[0] if depth == 1 else rewriter.emit(relax.op.concat(parts, 3))
    kernels = rewriter.emit(relax.op.permute_dims(call.args[1], [0, 2, 1, 3, 4]))
    made = _convolved(
        rewriter.reshape(joined, (n * result, depth * channels, *image)),
        rewriter.reshape(kernels, (out, depth * inner, *window)),
        call,
        strides,
        (above, left, below, right),
        dilation,
        rewriter,
    )
    apart = rewriter.reshape(made, (n, result, out, *target[3:]))
    return rewriter.emit(relax.op.permute_dims(apart, [0, 2, 1, 3, 4]))


def conv1d_transpose(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A transposed convolution of sequences -> one of images of one row."""
    x, weight, target = *map(shape_of, call.args), shape_of(call)
    if x is None or weight is None or target is None or not _usual(call, "NCW", "IOW"):
        return None
    found = call.attrs
    left, right = _numbers(found.padding)
    made = rewriter.emit(
        relax.op.nn.conv2d_transpose(
            rewriter.reshape(call.args[0], _row(x)),
            rewriter.reshape(call.args[1], _row(weight)),
            strides=(1, *_numbers(found.strides)),
            padding=(0, left, 0, right),
            output_padding=(0, *_numbers(found.output_padding)),
            dilation=(1, *_numbers(found.dilation)),
            groups=int(found.groups),
            out_dtype=dtype_of(call),
        )
    )
    return rewriter.reshape(made, target)


def conv2d_transpose(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
    """A transposed convolution -> a convolution with channels for the places between strides, permuted.

    y[q * s + r - p] = sum over j of x[q - j] * w[j * s + r]: for each of the s values of r a convolution of x
    with every s-th element of w, backwards.  So nothing is multiplied with the zeros that one would write
    between the elements of x.
    """
    x, weight, target = *map(shape_of, call.args), shape_of(call)
    if x is None or weight is None or target is None or not _usual(call, "NCHW", "IOHW"):
        return None
    groups = int(call.attrs.groups)
    sides = [_StridedAxis.of(call, d, weight[2 + d], is_open(x)) for d in range(2)]
    inner, out, strides = weight[0] // groups, weight[1], [side.stride for side in sides]
    kernels = _spread(call.args[1], [side.dilation for side in sides], rewriter)
    split = rewriter.reshape(
        _padded(kernels, {2 + d: side.zeros for d, side in enumerate(sides)}, rewriter),
        (groups, inner, out, *(size for side in sides for size in (side.taps, side.stride))),
    )
    order = rewriter.emit(relax.op.permute_dims(split, [0, 2, 4, 6, 1, 3, 5]))
    for axis in (5, 6):
        order = rewriter.emit(relax.op.flip(order, axis))
    kernel_shape = (groups * out * strides[0] * strides[1], inner, *(side.taps for side in sides))
    padding = [side.around[end] for end in range(2) for side in sides]
    made = _convolved(
        call.args[0], rewriter.reshape(order, kernel_shape), call, (1, 1), padding, (1, 1), rewriter
    )
    shape = shape_of(made)
    assert shape is not None
    apart = rewriter.reshape(made, (x[0], groups * out, *strides, *shape[2:]))
    woven = rewriter.emit(relax.op.permute_dims(apart, [0, 1, 4, 2, 5, 3]))
    rows, columns = (size * stride for size, stride in zip(shape[2:], strides, strict=True))
    whole = rewriter.reshape(woven, (x[0], groups * out, rows, columns))
    cut = [side.cut for side in sides]
    ends = [begin + size for begin, size in zip(cut, target[2:], strict=True)]
    if not any(cut) and same(tuple(ends), (rows, columns)):
        return whole
    return rewriter.emit(relax.op.strided_slice(whole, [2, 3], cut, ends))


@attrs.frozen
class _StridedAxis:
    """Rows or columns of a transposed convolution as those of a convolution.

    Attributes
    ----------
    stride, dilation : int
    taps : int
        Elements of the kernel that meet one result.
    zeros : tuple of int
        Before and behind the kernel, to whole strides.
    around : tuple of int
        Padding of the convolution.
    cut : int
        Results that it has before the first.
    """

    stride: int
    dilation: int
    taps: int
    zeros: tuple[int, int]
    around: tuple[int, int]
    cut: int

    @classmethod
    def of(cls, call: tvm.ir.Call, d: int, size: int, is_open: bool) -> _StridedAxis:
        """Those of an axis with a kernel of so many elements."""
        found = call.attrs
        stride, dilation, more = (
            int(values[d]) for values in (found.strides, found.dilation, found.output_padding)
        )
        before, behind = int(found.padding[d]), int(found.padding[2 + d])
        size = dilation * (size - 1) + 1
        # Zeros before the kernel make the padding whole strides, so that nothing must be cut off.  They may
        # take one more element, which costs more than a cut; but a cut of open sizes is no kernel for all.
        front = -before % stride
        if -(-(size + front) // stride) > -(-size // stride) and not is_open:
            front = 0
        shifted, wide = before + front, size + front
        taps = -(-wide // stride)
        first = max(taps - 1 - shifted // stride, 0)
        cut = shifted - (taps - 1 - first) * stride
        needless = (first + 1) * stride - cut + before + behind - size - more
        last = max(taps - 1 - needless // stride, 0)  # more than that where output_padding goes beyond
        return cls(stride, dilation, taps, (front, taps * stride - wide), (first, last), cut)


def _spread(weight: tvm.ir.Expr, dilation: Sequence[int], rewriter: Rewriter) -> tvm.ir.Expr:
    """A kernel with the zeros of its dilation between its elements."""
    for axis, far in zip((2, 3), dilation, strict=True):
        shape = shape_of(weight)
        assert shape is not None
        if far == 1 or shape[axis] == 1:
            continue
        apart = rewriter.reshape(weight, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
        wide = _padded(apart, {axis + 1: (0, far - 1)}, rewriter)
        whole = rewriter.reshape(wide, (*shape[:axis], shape[axis] * far, *shape[axis + 1 :]))
        size = far * (shape[axis] - 1) + 1
        weight = rewriter.emit(relax.op.strided_slice(whole, [axis], [0], [size]))
    return weight
