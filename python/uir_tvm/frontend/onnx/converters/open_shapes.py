# SPDX-License-Identifier: Apache-2.0
"""Operators whose result's shape is an operand, or follows from bounds: numbers, or sizes that are open."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper
from tvm import relax

from ....errors import ShapeError
from ....sizes.open_arithmetic import is_found, is_open, least, may_exceed, most
from ....sizes.open_size import AnySize, OpenSize
from ...open_expressions import expressions
from ...relax_view import shape_of
from ...rules.empty import reshape
from ..open_results import reshaped
from .node import OnnxNode

#: Operands that are read as numbers beside those that always decide.
READ: dict[str, tuple[int, ...]] = {"Gather": (1,)}
#: What exporters write for "to the end", whatever the size: bounds from here on.
ENDLESS = 2**31 - 1


def view(node: OnnxNode) -> list[Any] | None:
    """Reshape, Squeeze, Unsqueeze, Flatten: the elements in their order, in the inferred shape."""
    shape, _ = node.result()
    target = node.constant(1) if node.step.node.op_type == "Reshape" else None
    if target is not None and not is_open((*node.shape(), *target.tolist())):
        shape = _filled(node, target.tolist())
    return None if shape is None else [reshape(node.input(0), expressions(shape))]


def _filled(node: OnnxNode, target: list[int]) -> tuple[int, ...]:
    """The shape of a Reshape; ShapeError where the operand's elements do not fill it."""
    try:
        return tuple(int(size) for size in reshaped(node.step, node.shape(), target))
    except ArithmeticError as error:
        raise ShapeError(
            f"Reshape cannot give {list(node.shape())} the shape {target}.",
            where=node.step.text,
            need=str(error),
            remedy="pass sizes that fit",
        ) from error


def expand(node: OnnxNode) -> list[Any] | None:
    """Expand: broadcast to the inferred shape."""
    shape, _ = node.result()
    return None if shape is None else [relax.op.broadcast_to(node.input(0), expressions(shape))]


def slice_(node: OnnxNode) -> list[Any] | None:
    """Slice with constant bounds, by the standard's rules of clamping."""
    shape = node.shape()
    if node.step.version < 10:
        starts, ends = node.attributes["starts"], node.attributes["ends"]
        axes, steps = node.attributes.get("axes"), None
    else:
        found = [node.constant(place) for place in range(1, 5)]
        if found[0] is None or found[1] is None:
            return None
        starts, ends = found[0].tolist(), found[1].tolist()
        axes = None if found[2] is None else found[2].tolist()
        steps = None if found[3] is None else found[3].tolist()
    axes = list(range(len(starts))) if axes is None else [node.axis(int(axis)) for axis in axes]
    steps = [1] * len(starts) if steps is None else steps
    data = node.input(0)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        extent = shape[axis]
        if is_open((start, end, extent)):
            data = _open_slice(node, data, axis, (start, end, step))
            continue
        low, high, stride = slice(start, end, step).indices(extent)
        count = len(range(low, high, stride))
        if count == extent and stride == 1:
            continue
        if stride > 0 and count:
            data = node.emit(
                relax.op.strided_slice(data, [axis], [low], [low + (count - 1) * stride + 1], [stride])
            )
        else:
            places = np.arange(low, high, stride, dtype=np.int64)
            data = node.emit(relax.op.take(data, relax.const(places), axis=axis))
    return [data]


def _open_slice(node: OnnxNode, data: Any, axis: int, bounds: tuple[AnySize, AnySize, int]) -> Any:
    """A slice of one axis where a bound or the axis is open, forwards."""
    start, end, step = bounds
    size = (shape_of(data) or ())[axis]
    if step < 1:
        node.refuse("goes backwards over a size that is open", need="a positive step, or a number as size")
    low, high = _clamped(node, start, size), _clamped(node, end, size)
    if is_found(low, high):
        high = low + most(high - low, 0)  # what is found may leave nothing
    elif not low < high:
        node.refuse("may keep nothing of a size that is open", need="bounds with something between them")
    rest = size - high
    if low == 0 and isinstance(rest, int) and rest == 0 and step == 1:
        return data
    return _part(node, data, axis, low, high, step)


def _clamped(node: OnnxNode, bound: AnySize, size: AnySize) -> AnySize:
    """A bound within an axis, by the standard's rules."""
    if isinstance(bound, int) and bound >= ENDLESS:
        return size
    if isinstance(bound, int) and bound <= -ENDLESS:
        return 0
    if is_found(bound) and may_exceed(0, bound):
        node.refuse("may begin or end below 0, which is from the end", need="a bound that is known not to")
    if bound < 0:
        bound = bound + size
    if is_found(bound, size):
        return least(most(bound, 0), size)
    if bound < 0:
        return 0
    return size if bound > size else bound


def _part(node: OnnxNode, data: Any, axis: int, low: AnySize, high: AnySize, step: int = 1) -> Any:
    """The elements of an axis between two places inside it."""
    ends, within = expressions([low, high]), is_open((low, high, (shape_of(data) or ())[axis]))
    return node.emit(relax.op.strided_slice(data, [axis], ends[:1], ends[1:], [step], assume_inbound=within))


def split(node: OnnxNode) -> list[Any] | None:
    """Split: slices of the inferred sizes."""
    axis = node.axis(int(node.attributes.get("axis", 0)))
    given = node.constant(1)
    if given is not None and is_open(given.flat):
        sizes = list(given.flat)
        if sum(sizes) != node.shape()[axis]:
            node.refuse("has parts that are not the whole", need=f"{node.shape()[axis]} in all")
    else:
        shapes = [node.result(i)[0] for i in range(len(node.step.node.output))]
        if any(shape is None for shape in shapes):
            return None
        sizes = [shape[axis] for shape in shapes if shape is not None]
    parts, start = [], 0
    for size in sizes:
        parts.append(_part(node, node.input(0), axis, start, start + size))
        start = start + size
    return parts


def arange(node: OnnxNode) -> list[Any] | None:
    """Range by open sizes; by numbers it is TVM's."""
    given = [node.constant(place) for place in range(3)]
    if any(each is None for each in given):
        return None
    start, end, step = (each.reshape(-1)[0] for each in given if each is not None)
    if not is_open((start, end, step)):
        return None
    _, dtype = node.result()
    if isinstance(step, OpenSize) or not isinstance(dtype, str) or "int" not in dtype:
        node.refuse("counts by a size that is open", need="whole numbers, and a number as step")
    if not (start < end if step > 0 else end < start):
        node.refuse("may count nothing", need="an end beyond the start")
    begin, stop = expressions([start if isinstance(start, OpenSize) else int(start), end])
    stop = stop if isinstance(end, OpenSize) else int(end)
    return [relax.op.arange(begin, stop, int(step), dtype)]


def constant_of_shape(node: OnnxNode) -> list[Any] | None:
    """ConstantOfShape of open sizes; of numbers it is TVM's."""
    shape = node.constant(0)
    if shape is None or not is_open(shape.flat):
        return None
    given = node.attributes.get("value")
    value = np.zeros((), np.float32) if given is None else numpy_helper.to_array(given).reshape(())
    return [relax.op.broadcast_to(relax.const(value, value.dtype.name), expressions(shape.flat))]


def gather(node: OnnxNode) -> list[Any] | None:
    """Gather along an axis of open size, or of a tensor that has one; all others are TVM's."""
    shape = node.shape()
    if not is_open(shape):
        return None
    axis = node.axis(int(node.attributes.get("axis", 0)))
    size, places = shape[axis], node.constant(1)
    if places is None:
        if isinstance(size, OpenSize):
            node.refuse("takes computed places of an open size", need="constant places, or a number as size")
        index, dtype = node.input(1), node.dtype(1)
        if not dtype.startswith("uint"):
            turned = relax.op.add(index, relax.const(size, dtype))
            index = node.emit(relax.op.where(relax.op.less(index, relax.const(0, dtype)), turned, index))
        return [relax.op.take(node.input(0), index, axis=axis)]
    if any(not -size <= place < size for place in places.flat):
        node.refuse("takes what is not there", need=f"places within {size}")
    if places.size != 1:
        if any(isinstance(place, OpenSize) or place < 0 for place in places.flat):
            if isinstance(size, OpenSize) or is_open(places.flat):
                node.refuse("counts places from an open end", need="one place, or none below 0")
            places = places % size
        return [relax.op.take(node.input(0), relax.const(places.astype(np.int64)), axis=axis)]
    (place,) = places.flat
    place = place + size if place < 0 else place
    place = place if isinstance(place, OpenSize) else int(place)
    part = _part(node, node.input(0), axis, place, place + 1)
    return [relax.op.reshape(part, expressions([*shape[:axis], *places.shape, *shape[axis + 1 :]]))]


SIZED = {
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze", "Flatten"), view),
    "ConstantOfShape": constant_of_shape,
    "Expand": expand,
    "Gather": gather,
    "Range": arange,
    "Slice": slice_,
    "Split": split,
}
