# SPDX-License-Identifier: Apache-2.0
"""Images and detection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from tvm import relax, topi

from ...relax_view import dtype_of
from ..conversion_context import ConversionContext, Value
from .convolutions import paddings


def _resized(dims: int) -> Callable[..., Value]:
    def convert(
        c: ConversionContext, a: SimpleNamespace, x: Value, size: Value = None, roi: Value = None
    ) -> Value:
        sizes = list(a.size) if size is None else c.numbers(size, "a size")
        region = a.roi if roi is None else [float(n) for n in c.static(roi, "a region").reshape(-1)]
        return resize(
            c,
            x,
            dims,
            sizes,
            a.layout,
            a.method,
            a.coordinate_transformation_mode,
            a.rounding_method,
            roi=region or [0.0] * (2 * dims),
            cubic=(a.cubic_alpha, a.cubic_exclude),
            outside=a.extrapolation_value,
            out_dtype=a.out_dtype,
        )

    return convert


def resize(
    c: ConversionContext,
    x: Value,
    dims: int,
    sizes: Sequence[int],
    layout: str,
    method: str,
    mode: str,
    rounding: str = "",
    *,
    roi: Sequence[float] = (),
    cubic: tuple[float, int] = (-0.5, 0),
    outside: float = 0.0,
    out_dtype: str = "",
) -> Value:
    """The image in other sizes."""
    sizes = [int(n) for n in sizes]
    rest = (cubic[0], cubic[1], outside, out_dtype or dtype_of(x))
    if not rounding and method == "nearest_neighbor":
        rounding = "round" if mode == "align_corners" else "floor"
    if rounding == "round":
        rounding = "round_prefer_ceil"  # Relay's round takes halves up, TOPI's of today the even one
    if dims == 1:
        return c.kernel(topi.image.resize1d, x, list(roi), sizes, layout, method, mode, rounding, *rest)
    operation = relax.op.image.resize2d if dims == 2 else relax.op.image.resize3d
    return c.emit(operation(x, tuple(sizes), list(roi) or None, layout, method, mode, rounding, *rest))


def _upsampling(c: ConversionContext, a: SimpleNamespace, x: Value, *scales: Value) -> Value:
    axes = [n for n, letter in enumerate(a.layout) if letter not in "NC"]
    names = {"D": "scale_d", "H": "scale_h", "W": "scale_w"}
    factors = [float(c.static(s, "a scale").item()) for s in scales] or [
        float(getattr(a, names[a.layout[n]])) for n in axes
    ]
    sizes = [int(round(c.shape(x)[n] * factor)) for n, factor in zip(axes, factors, strict=True)]
    method = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(a.method, a.method)
    mode = getattr(a, "coordinate_transformation_mode", "") or "asymmetric"
    if len(axes) == 2:
        mode = "align_corners" if getattr(a, "align_corners", False) else "asymmetric"
    return resize(c, x, len(axes), sizes, a.layout, method, mode)


def _crop_and_resize(
    c: ConversionContext, a: SimpleNamespace, x: Value, boxes: Value, indices: Value
) -> Value:
    out = a.out_dtype or dtype_of(x)
    options = (list(a.crop_size), a.layout, a.method, a.extrapolation_value, out)
    return c.kernel(topi.image.crop_and_resize, x, boxes, indices, *options)


def _affine_grid(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    return c.emit(relax.op.image.affine_grid(x, tuple(int(n) for n in a.target_shape)))


def _grid_sample(c: ConversionContext, a: SimpleNamespace, x: Value, grid: Value) -> Value:
    return c.emit(
        relax.op.image.grid_sample(x, grid, a.method, a.layout, a.padding_mode, bool(a.align_corners))
    )


def _dilation2d(c: ConversionContext, a: SimpleNamespace, x: Value, w: Value) -> Value:
    operation = topi.image.dilation2d_nchw if a.data_layout == "NCHW" else topi.image.dilation2d_nhwc
    sizes = (list(a.strides), paddings(a.padding, 2), list(a.dilations))
    return c.kernel(operation, x, w, *sizes, a.out_dtype or dtype_of(x))


def _roi_align(c: ConversionContext, a: SimpleNamespace, x: Value, rois: Value) -> Value:
    sizes = [int(n) for n in a.pooled_size]
    options = (sizes, a.spatial_scale, a.sample_ratio, False, a.layout, a.mode)
    return c.emit(relax.op.vision.roi_align(x, rois, *options))


def _roi_pool(c: ConversionContext, a: SimpleNamespace, x: Value, rois: Value) -> Value:
    return c.emit(
        relax.op.vision.roi_pool(x, rois, [int(n) for n in a.pooled_size], a.spatial_scale, a.layout)
    )


def _yolo_reorg(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    """out[b, k, j, i] reads x as darknet's reorg layer does."""
    n, depth, h, w = c.shape(x)
    s = a.stride
    k, j, i = np.meshgrid(np.arange(depth), np.arange(h), np.arange(w), indexing="ij")
    channels = depth // (s * s)
    offset = k // channels
    source = ((k % channels) * h * s + j * s + offset // s) * w * s + i * s + offset % s
    flat = c.reshape(x, [n, depth * h * w])
    taken = c.emit(relax.op.take(flat, c.const(source.reshape(-1), "int64"), 1))
    return c.reshape(taken, [n, depth * s * s, h // s, w // s])


def _multibox_prior(c: ConversionContext, a: SimpleNamespace, x: Value) -> Value:
    """Boxes around every pixel's centre, of the sizes at the first ratio and the ratios at the first size."""
    h, w = c.shape(x)[2:]
    steps = [1 / n if step <= 0 else step for n, step in zip((h, w), a.steps, strict=True)]
    rows = (np.arange(h) + a.offsets[0]) * steps[0]
    columns = (np.arange(w) + a.offsets[1]) * steps[1]
    root = np.sqrt(a.ratios[0])
    half = [(s * h / w * root / 2, s / root / 2) for s in a.sizes]
    half += [(a.sizes[0] * h / w * np.sqrt(r) / 2, a.sizes[0] / np.sqrt(r) / 2) for r in a.ratios[1:]]
    boxes = [
        (column - x_half, row - y_half, column + x_half, row + y_half)
        for row in rows
        for column in columns
        for x_half, y_half in half
    ]
    values = np.clip(boxes, 0, 1) if a.clip else np.array(boxes)
    return c.like(values[None], x)


def _valid_counts(c: ConversionContext, a: SimpleNamespace, x: Value, threshold: Value) -> Value:
    least = float(c.static(threshold, "a threshold").item())
    three = c.emit(relax.op.vision.get_valid_counts(x, least, int(a.id_index), int(a.score_index)))
    return tuple(c.emit(relax.TupleGetItem(three, n)) for n in range(3))


def _suppressed(
    c: ConversionContext, a: SimpleNamespace, x: Value, counts: Value, indices: Value, *rest: Value
) -> Value:
    most, iou = rest[:2]
    result = c.emit(
        relax.op.vision.non_max_suppression(
            x,
            counts,
            indices,
            int(c.static(most, "a size").item()),
            float(c.static(iou, "a threshold").item()),
            bool(a.force_suppress),
            a.top_k,
            a.coord_start,
            a.score_index,
            a.id_index,
            bool(a.return_indices),
            bool(a.invalid_to_bottom),
        )
    )
    fields: Any = getattr(result.ty, "fields", None)
    return (
        result if fields is None else tuple(c.emit(relax.TupleGetItem(result, n)) for n in range(len(fields)))
    )


_RESIZED = _resized(2)

TABLE = {
    "image.resize1d": _resized(1),
    "image.resize2d": _RESIZED,
    "dyn.image.resize2d": _RESIZED,
    "image.resize3d": _resized(3),
    "nn.upsampling": _upsampling,
    "dyn.nn.upsampling": _upsampling,
    "nn.upsampling3d": _upsampling,
    "dyn.nn.upsampling3d": _upsampling,
    "image.crop_and_resize": _crop_and_resize,
    "image.affine_grid": _affine_grid,
    "image.grid_sample": _grid_sample,
    "image.dilation2d": _dilation2d,
    "vision.roi_align": _roi_align,
    "vision.roi_pool": _roi_pool,
    "vision.yolo_reorg": _yolo_reorg,
    "vision.multibox_prior": _multibox_prior,
    "vision.get_valid_counts": _valid_counts,
    "vision.non_max_suppression": _suppressed,
}
