# SPDX-License-Identifier: Apache-2.0
"""Images between convolutions of the library, with the channels of a pixel side by side.

A library whose fast code wants channels last brings every input into that layout and every result back. Here
values stay in it from one convolution to the next, through what works element by element, on windows, or
joins channels, so that only the edges of a network are brought from one layout into the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tvm
from tvm import relax

from ..frontend.relax_view import axes_of
from ..library.library_tables import LibraryTable
from ..sizes.open_arithmetic import is_one, is_open
from ..sizes.open_size import expressions
from .library_match import operand
from .program import Op, Program, Value, View, compose
from .strided_views import Layout, rebase

CONVOLUTION = "library.conv2d"
#: Axes of images with channels first in the order in which they lie with channels last, and back.
TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def keep_channels_last(program: Program, table: LibraryTable) -> None:
    """Let images lie with the channels last where whatever writes and reads them can do that.

    Before: z = conv2d(relu6(conv2d(x))), values (n, c, h, w).  After: the first convolution writes
    (n, h, w, c), relu6 runs over that shape, the second one reads it; readers see views of their old shapes.

    Parameters
    ----------
    program : Program
        After `library_match`; changed in place.
    table : LibraryTable
        Its ``channels_last``.
    """
    if table.channels_last:
        chosen = _chosen(program)
        if any(op.name == CONVOLUTION for op in chosen.values()):
            _turn(program, chosen)


def _chosen(program: Program) -> dict[Value, Op]:
    """The most values, with their writers, of which each has a writer and readers that take them so."""
    users, outputs = program.users(), program.output_bases()
    chosen = {op.results[0]: op for op in program.ops if _movable(op) and op.results[0] not in outputs}
    settled = False
    while not settled:
        settled = True
        for value, op in list(chosen.items()):
            readers = users.get(value, ())
            if not (_writes(op, chosen) and all(_reads(*reader, value, chosen) for reader in readers)):
                del chosen[value]
                settled = False
    return chosen


def _movable(op: Op) -> bool:
    """Whether an operator could write its result with the channels last."""
    if len(op.results) != 1 or len(op.shape) != 4 or not op.result.size:
        return False
    if op.name == CONVOLUTION or (op.kind.kind == "elementwise" and op.kind.reshapable):
        return True
    if op.name in WINDOWS and is_open(op.operands[0].shape):
        return False  # whose kernel for all sizes walks planes
    return op.name in TURNED and op.name not in REDUCTIONS and _is_channels_first(op)


def _is_channels_first(op: Op) -> bool:
    """Whether the call says that its second axis is the channels', or leaves them where they are."""
    assert op.call is not None
    if op.name == "concat":
        return int(op.call.attrs.axis) % 4 == 1
    if op.name == "take":
        axis = op.call.attrs.axis
        return axis is not None and int(axis) % 4 != 1 and len(op.operands[1].shape) == 1
    return {str(op.call.attrs.layout), str(getattr(op.call.attrs, "out_layout", "NCHW"))} == {"NCHW"}


def _writes(op: Op, chosen: Mapping[Value, Op]) -> bool:
    """Whether what an operator reads lies as its result shall."""
    if op.name == CONVOLUTION:
        residual = operand(op, "residual")
        return residual is None or residual.base in chosen or _is_pixel(residual.base.shape)
    images = [view for view in op.operands if not _is_repeated(view)]
    return bool(images) and all(view.base in chosen for view in images)


def _reads(op: Op, index: int, value: Value, chosen: Mapping[Value, Op]) -> bool:
    """Whether an operator can read a value with the channels last."""
    view = op.operands[index]
    if rebase(view.layout, _flat(value.shape)) is None:
        return False
    if _is_pixel(value.shape):
        return True
    if len(view.shape) != 4:
        return False
    if op.name == CONVOLUTION:
        return index == 0 or (index == len(op.operands) - 1 and op.result in chosen)
    return op.results[0] in chosen or _is_sink(op)


def _is_pixel(shape: tuple[int, ...]) -> bool:
    """Images of one pixel lie the same in both layouts."""
    return len(shape) == 4 and is_one(shape[2]) and is_one(shape[3])


def _is_repeated(view: View) -> bool:
    """Whether every pixel reads the same: numbers, vectors of channels, gates."""
    return not any(stride for dim in view.layout.dims[2:] for _, stride in dim)


def _is_sink(op: Op) -> bool:
    """A reduction of pixels or of channels, whose result lies the same either way."""
    if op.name not in REDUCTIONS or op.call is None or len(op.operands[0].shape) != 4:
        return False
    return axes_of(op.call.attrs.axis, 4) in ((2, 3), (1,))


def _flat(shape: tuple[int, ...]) -> Layout:
    """The elements of images with channels first, in their order, where they lie with channels last."""
    n, c, h, w = shape
    images = Layout.contiguous((n, h, w, c)).permute(TO_FIRST)
    flat = images.reshape([n * c * h * w])
    assert flat is not None
    return flat


def _turn(program: Program, chosen: Mapping[Value, Op]) -> None:
    """Write the chosen values with the channels last."""
    moved: dict[Value, View] = {}
    for op in program.ops:
        last = [view.base in chosen for view in op.operands]
        op.operands = [
            compose(view, moved[view.base]) if is_last else view
            for view, is_last in zip(op.operands, last, strict=True)
        ]
        result = op.results[0] if op.results else None
        turns = result in chosen
        if op.name == CONVOLUTION:
            reads_so = last[0] or (turns and _is_pixel(op.operands[0].shape))
            layouts = {"input_layout": reads_so, "output_layout": turns}
            op.attrs["conv"] |= {name: "NHWC" for name, is_last in layouts.items() if is_last}
        elif turns or (any(last) and _is_sink(op) and not _is_pixel(op.operands[0].shape)):
            if op.call is not None and op.name in TURNED:
                op.call = TURNED[op.name](op)
            op.operands = [
                View(view.base, view.layout.permute(TO_LAST)) if len(view.shape) == 4 else view
                for view in op.operands
            ]
            turns = turns or len(op.shape) == 4
        if turns and result is not None:
            moved[result] = _moved(program, op, result)
    for value in moved.keys() - chosen.keys():  # pixels, which others read as they did
        program.replace_value(value, moved[value])


def _moved(program: Program, op: Op, value: Value) -> View:
    """The old value as a view of the one that the operator now writes."""
    made = program.fresh(value.name, [value.shape[axis] for axis in TO_LAST], value.dtype)
    made.producer = op
    op.results = [made]
    return View(made, made.view().layout.permute(TO_FIRST))


def _images(op: Op) -> list[relax.Var]:
    """Variables of an operator's operands, with the channels last where they are images."""
    shapes = [
        [view.shape[axis] for axis in TO_LAST] if len(view.shape) == 4 else view.shape for view in op.operands
    ]
    return [
        relax.Var("x", relax.TensorType(expressions(shape), view.base.dtype))
        for shape, view in zip(shapes, op.operands, strict=True)
    ]


def _pool(op: Op) -> tvm.ir.Call:
    assert op.call is not None
    found = op.call.attrs
    names = ("pool_size", "strides", "padding", "dilation", "ceil_mode", "count_include_pad")
    given = {name: getattr(found, name) for name in names}
    return getattr(relax.op.nn, op.name.removeprefix("nn."))(*_images(op), **given, layout="NHWC")


def _adaptive_pool(op: Op) -> tvm.ir.Call:
    assert op.call is not None
    size = op.call.attrs.output_size
    return relax.op.nn.adaptive_avg_pool2d(*_images(op), None if size is None else list(size), "NHWC")


def _concat(op: Op) -> tvm.ir.Call:
    return relax.op.concat(_images(op), axis=3)


def _resize(op: Op) -> tvm.ir.Call:
    assert op.call is not None
    found = op.call.attrs
    names = (
        "method",
        "coordinate_transformation_mode",
        "rounding_method",
        "cubic_alpha",
        "cubic_exclude",
        "extrapolation_value",
        "out_dtype",
    )
    given = {name: getattr(found, name) for name in names}
    return relax.op.image.resize2d(*_images(op), op.call.args[1], list(found.roi), "NHWC", **given)


def _take(op: Op) -> tvm.ir.Call:
    """Rows or columns, as PyTorch's nearest resize takes them."""
    assert op.call is not None
    axis = TO_LAST.index(int(op.call.attrs.axis) % 4)
    return relax.op.take(*_images(op), axis=axis, mode=str(op.call.attrs.mode))


def _reduction(op: Op) -> tvm.ir.Call:
    assert op.call is not None
    axes = sorted(TO_LAST.index(axis) for axis in axes_of(op.call.attrs.axis, 4))
    return getattr(relax.op, op.name)(*_images(op), axes, bool(op.call.attrs.keepdims))


#: Reductions, whose readers need not take images.
REDUCTIONS = frozenset({"max", "mean", "min", "sum"})
#: Operators whose elements are of a window around each pixel.
WINDOWS = frozenset({"nn.avg_pool2d", "nn.max_pool2d"})
#: Operator -> its call for images with the channels last; elementwise ones have the same.
TURNED: Mapping[str, Callable[[Op], Any]] = {
    "concat": _concat,
    "image.resize2d": _resize,
    "nn.adaptive_avg_pool2d": _adaptive_pool,
    "nn.avg_pool2d": _pool,
    "nn.max_pool2d": _pool,
    "take": _take,
    **dict.fromkeys(REDUCTIONS, _reduction),
}
