# SPDX-License-Identifier: Apache-2.0
"""Resize in every mode: along each axis, results are weighted sums of elements at constant places.

Coordinates, weights and rounding are those of the ONNX standard's operator Resize (version 19).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from .node import Converter, OnnxNode, number

#: More weights than this for one result are a product with a matrix.
TAPS = 8


def _coordinates(node: OnnxNode, size: int, out: int, scale: float, roi: tuple[float, float]) -> np.ndarray:
    """Where the centres of the results lie among the elements of one axis."""
    x = np.arange(out, dtype=np.float64)
    mode = node.attributes.get("coordinate_transformation_mode", b"half_pixel").decode()
    if mode == "align_corners":
        whole = scale * size  # not rounded, as the standard's reference
        return x * (size - 1) / (whole - 1) if out > 1 else np.zeros(out)
    if mode == "asymmetric":
        return x / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if out == 1:
            return np.full(out, 0.5 * (start + end) * (size - 1))
        return start * (size - 1) + x * (end - start) * (size - 1) / (out - 1)
    if mode == "half_pixel_symmetric":
        whole = scale * size
        return size / 2 * (1 - out / whole) + (x + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel" and out == 1:
        return np.zeros(out)
    if mode not in ("half_pixel", "pytorch_half_pixel"):
        node.refuse(f"in the mode {mode}", need="a mode of the standard's version 19")
    return (x + 0.5) / scale - 0.5


def _nearest(node: OnnxNode, at: np.ndarray, size: int) -> np.ndarray:
    """Places of the nearest elements."""
    mode = node.attributes.get("nearest_mode", b"round_prefer_floor").decode()
    rounded = {
        "round_prefer_floor": np.ceil(at - 0.5),
        "round_prefer_ceil": np.floor(at + 0.5),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }[mode]
    return np.clip(rounded, 0, size - 1).astype(np.int64)


def _kernel(node: OnnxNode, distance: np.ndarray) -> np.ndarray:
    """The weight of an element at a distance from the centre."""
    d = np.abs(distance)
    if node.attributes["mode"] == b"linear":
        return np.maximum(0, 1 - d)
    a = float(node.attributes.get("cubic_coeff_a", -0.75))
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = a * (((d - 5) * d + 8) * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def weights(node: OnnxNode, at: np.ndarray, size: int, scale: float) -> np.ndarray:
    """How much each element counts for each result of one axis: (results, elements)."""
    reach = 1.0 if node.attributes["mode"] == b"linear" else 2.0
    # shrinking with antialias widens the kernel
    wide = min(scale, 1.0) if node.attributes.get("antialias", 0) else 1.0
    matrix = np.zeros((len(at), size))
    outside = bool(node.attributes.get("exclude_outside", 0))
    for row, centre in enumerate(at):
        places = np.arange(int(np.floor(centre - reach / wide)), int(np.ceil(centre + reach / wide)) + 1)
        found = _kernel(node, (places - centre) * wide)
        if outside:
            found = np.where((places >= 0) & (places < size), found, 0)
        if outside or wide != 1.0:
            found = found / found.sum()
        np.add.at(matrix[row], np.clip(places, 0, size - 1), found)
    return matrix


def resize(node: OnnxNode) -> list[Any] | None:
    """Resize by constant scales or sizes."""
    shape, (result, _) = node.shape(), node.result()
    if node.step.version < 11:
        given = node.constant(1)
        # shrinking takes other elements, and version 10 does not say which
        return upsample(node) if given is not None and (given >= 1).all() else None
    if result is None:
        return None
    rank = len(shape)
    axes = [node.axis(int(axis)) for axis in node.attributes.get("axes") or range(rank)]
    given, roi = node.constant(2), node.constant(1)
    scales = [1.0] * rank
    for place, axis in enumerate(axes):
        known = given is not None and given.size
        scales[axis] = float(given[place]) if known and given is not None else result[axis] / shape[axis]
    if not (given is not None and given.size):
        policy = node.attributes.get("keep_aspect_ratio_policy", b"stretch")
        sizes = node.constant(3)
        if policy != b"stretch" and sizes is not None:
            ratios = [int(size) / shape[axis] for size, axis in zip(sizes, axes, strict=True)]
            chosen = min(ratios) if policy == b"not_larger" else max(ratios)
            scales = [chosen if axis in axes else 1.0 for axis in range(rank)]
    crop = node.attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize"
    data, dtype = node.input(0), node.dtype()
    beyond: Any = None
    for place, axis in enumerate(axes):
        box = (0.0, 1.0)
        if crop and roi is not None:
            box = (float(roi[place]), float(roi[len(axes) + place]))
        if result[axis] == shape[axis] and scales[axis] == 1.0 and not crop:
            continue
        at = _coordinates(node, shape[axis], result[axis], scales[axis], box)
        data = _along(node, data, axis, at, shape[axis], scales[axis])
        if crop:
            out = (at < 0) | (at > shape[axis] - 1)
            here = out.reshape([-1 if i == axis else 1 for i in range(rank)])
            beyond = here if beyond is None else beyond | here
    if beyond is not None and beyond.any():
        mask = relax.const(np.broadcast_to(beyond, result).copy(), "bool")
        data = relax.op.where(mask, number(float(node.attributes["extrapolation_value"]), dtype), data)
    return [data]


def _along(node: OnnxNode, data: Any, axis: int, at: np.ndarray, size: int, scale: float) -> Any:
    """One axis resized."""
    if node.attributes.get("mode", b"nearest") == b"nearest":
        return node.emit(relax.op.take(data, relax.const(_nearest(node, at, size)), axis=axis))
    dtype = str(data.ty.dtype.dtype)
    if not dtype.startswith("float"):
        node.refuse(f"of {dtype} by weights", need="floats", remedy="cast it to float32 before, and round")
    matrix = weights(node, at, size, scale)
    rank = len(data.ty.shape)
    taps = int((matrix != 0).sum(1).max())
    if taps > TAPS:
        order = [i for i in range(rank) if i != axis] + [axis]
        product = node.emit(
            relax.op.matmul(relax.op.permute_dims(data, order), relax.const(matrix.T.astype(dtype)))
        )
        back = [order.index(i) for i in range(rank)]
        return node.emit(relax.op.permute_dims(product, back))
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :taps]
    total: Any = None
    for tap in range(taps):
        column = places[:, tap]
        weight = matrix[np.arange(len(at)), column].astype(dtype)
        weight = weight.reshape([-1 if i == axis else 1 for i in range(rank)])
        part = node.emit(relax.op.take(data, relax.const(column.astype(np.int64)), axis=axis))
        part = node.emit(relax.op.multiply(part, relax.const(weight, dtype)))
        total = part if total is None else node.emit(relax.op.add(total, part))
    return total


def upsample(node: OnnxNode) -> list[Any] | None:
    """Upsample, by which Resize was called before version 10: corners count as centres."""
    given = node.constant(1) if node.step.version >= 9 else np.array(node.attributes["scales"])
    if given is None:
        return None
    node.attributes.update(coordinate_transformation_mode=b"asymmetric", nearest_mode=b"floor")
    data = node.input(0)
    for axis, (size, scale) in enumerate(zip(node.shape(), given, strict=True)):
        if scale != 1:
            out = int(np.floor(size * scale))
            at = _coordinates(node, size, out, float(scale), (0.0, 1.0))
            data = _along(node, data, axis, at, size, float(scale))
    return [data]


def roi_align(node: OnnxNode) -> None:
    """RoiAlign of averages is TVM's; its largest sample is not the standard's."""
    if node.attributes.get("mode", b"avg") != b"avg":
        node.refuse("of the largest sample", need="mode avg")


RESIZE: dict[str, Converter] = {"Resize": resize, "RoiAlign": roi_align, "Upsample": upsample}
