# SPDX-License-Identifier: Apache-2.0
"""Operators that move elements by constants: padding, triangles, sums of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from ....sizes.open_arithmetic import is_open
from ...open_expressions import expressions
from ...relax_view import shape_of
from .node import OnnxNode, number


def pad(node: OnnxNode) -> list[Any] | None:
    """Pad in every mode: concatenations with a constant, or gathers of elements inside."""
    version, shape = node.step.version, node.shape()
    if version < 11:
        amounts = node.attributes.get("pads") or node.attributes.get("paddings")
        value: Any = number(float(node.attributes.get("value", 0.0)), node.dtype())
    else:
        given = node.constant(1)
        if given is None:
            return None
        amounts = given.tolist()
        value = node.input(2) if node.input(2) is not None else number(0, node.dtype())
    assert amounts is not None
    chosen = node.constant(3)
    axes = list(range(len(shape))) if chosen is None else [node.axis(int(a)) for a in chosen.reshape(-1)]
    mode = node.attributes.get("mode", b"constant").decode()
    result = node.input(0)
    count = len(axes)
    for axis, before, after in zip(axes, amounts[:count], amounts[count:], strict=True):
        result = _padded(node, result, axis, int(before), int(after), mode, value)
    return [result]


def _padded(node: OnnxNode, data: Any, axis: int, before: int, after: int, mode: str, value: Any) -> Any:
    """One axis padded; negative amounts cut off."""
    shape = list(shape_of(data) or ())
    size = shape[axis]
    if before == 0 and after == 0:
        return data
    if mode != "constant":
        places = np.pad(np.arange(size), (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]
        places = places[max(-before, 0) : len(places) - max(-after, 0)]
        return node.emit(relax.op.take(data, relax.const(places.astype(np.int64)), axis=axis))
    if before < 0 or after < 0:
        ends = expressions([max(-before, 0), size - max(-after, 0)])
        data = node.emit(relax.op.strided_slice(data, [axis], ends[:1], ends[1:]))
    parts = [data]
    for amount, place in ((before, 0), (after, 2)):
        if amount > 0:
            part = [*shape[:axis], amount, *shape[axis + 1 :]]
            filled = node.emit(
                relax.op.broadcast_to(relax.op.reshape(value, [1] * len(shape)), expressions(part))
            )
            parts.insert(0 if place == 0 else len(parts), filled)
    return node.emit(relax.op.concat(parts, axis)) if len(parts) > 1 else data


def trilu(node: OnnxNode) -> list[Any] | None:
    """Trilu with a constant diagonal: elements on one side of it, zeros elsewhere."""
    diagonal = node.constant(1)
    if node.input(1) is not None and diagonal is None:
        return None
    k = 0 if diagonal is None else int(diagonal.reshape(-1)[0])
    rows, columns = node.shape()[-2:]
    if is_open((rows, columns)):
        return [(relax.op.triu if node.attributes.get("upper", 1) else relax.op.tril)(node.input(0), k)]
    above = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    kept = above >= k if node.attributes.get("upper", 1) else above <= k
    mask = relax.const(np.broadcast_to(kept, (rows, columns)).copy(), "bool")
    return [relax.op.where(mask, node.input(0), number(0, node.dtype()))]


def reverse_sequence(node: OnnxNode) -> list[Any]:
    """ReverseSequence: each row's first elements backwards."""
    batch, time = int(node.attributes["batch_axis"]), int(node.attributes["time_axis"])
    lengths = node.input(1)
    shape = node.shape()
    along = [1] * len(shape)
    along[time] = shape[time]
    places = relax.const(np.arange(shape[time], dtype=np.int64).reshape(along), "int64")
    rows = [1] * len(shape)
    rows[batch] = shape[batch]
    limit = node.emit(relax.op.reshape(relax.op.astype(lengths, "int64"), rows))
    turned = relax.op.subtract(relax.op.subtract(limit, relax.const(1, "int64")), places)
    chosen = node.emit(relax.op.where(relax.op.less(places, limit), turned, places))
    chosen = node.emit(relax.op.broadcast_to(chosen, shape))
    return [relax.op.gather_elements(node.input(0), chosen, axis=time)]


def col2im(node: OnnxNode) -> list[Any] | None:
    """Col2Im: the sum of windows' elements at each place of the image, as a product with a constant."""
    image, block = node.constant(1), node.constant(2)
    if image is None or block is None:
        return None
    rank = len(image)
    strides = node.attributes.get("strides") or [1] * rank
    dilations = node.attributes.get("dilations") or [1] * rank
    pads = node.attributes.get("pads") or [0] * (2 * rank)
    counts = [
        (int(image[i]) + pads[i] + pads[rank + i] - dilations[i] * (int(block[i]) - 1) - 1) // strides[i] + 1
        for i in range(rank)
    ]
    batch, columns, windows = node.shape()
    cells = int(np.prod(block))
    channels, size = columns // cells, int(np.prod(image))
    inside = np.indices(tuple(int(b) for b in block)).reshape(rank, -1)
    starts = np.indices(tuple(counts)).reshape(rank, -1)
    result = None
    flat = node.emit(relax.op.reshape(node.input(0), (batch, channels, cells * windows)))
    at = [starts[i][None, :] * strides[i] + inside[i][:, None] * dilations[i] - pads[i] for i in range(rank)]
    valid = np.logical_and.reduce([(a >= 0) & (a < int(s)) for a, s in zip(at, image, strict=True)])
    target = np.ravel_multi_index([np.where(valid, a, 0) for a in at], tuple(int(s) for s in image))
    # Place of the image -> the elements that fall on it, at most one of each cell of the block.
    order: list[list[int]] = [[] for _ in range(size)]
    for number_, (place, ok) in enumerate(zip(target.ravel(), valid.ravel(), strict=True)):
        if ok:
            order[int(place)].append(number_)
    zero = node.emit(relax.op.zeros((batch, channels, 1), node.dtype()))
    source = node.emit(relax.op.concat([flat, zero], 2))
    for layer in range(max(map(len, order))):
        places = [row[layer] if layer < len(row) else cells * windows for row in order]
        part = node.emit(relax.op.take(source, relax.const(np.array(places, np.int64)), axis=2))
        result = part if result is None else node.emit(relax.op.add(result, part))
    assert result is not None
    return [relax.op.reshape(result, (batch, channels, *(int(s) for s in image)))]


def eye_like(node: OnnxNode) -> list[Any] | None:
    """EyeLike: a constant of the inferred type."""
    shape, dtype = node.result()
    if shape is None or not dtype:
        return None
    eye = np.eye(shape[0], shape[1], k=int(node.attributes.get("k", 0)))
    return [relax.op.astype(relax.const(eye.astype(np.float32)), dtype)]


VIEWS = {
    "Col2Im": col2im,
    "EyeLike": eye_like,
    "Pad": pad,
    "ReverseSequence": reverse_sequence,
    "Trilu": trilu,
}
