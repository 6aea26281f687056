# SPDX-License-Identifier: Apache-2.0
"""Converters of PyTorch's interpolation and average pools: sums of a few neighbours with constant weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import fx
from tvm import relax

from ..sizes.open_arithmetic import is_open
from .open_expressions import expressions
from .relax_view import dtype_of, shape_of
from .torch_graph import arguments, each

aten = torch.ops.aten
NARROW = ("float16", "bfloat16")


def _weights(operator: Callable[..., torch.Tensor], aligns: bool) -> Callable[..., torch.Tensor]:
    """(identity as [n, 1, 1, n], size, align_corners, scale) -> the weights of one axis, [n, 1, 1, size]."""

    def compute(eye: torch.Tensor, size: int, aligned: bool, scale: float | None) -> torch.Tensor:
        return operator(eye, [1, size], *([aligned] if aligns else []), None, scale)

    return compute


_LINEAR = _weights(aten.upsample_bilinear2d.default, True)
#: Name -> its ranks and the weights of one axis, which PyTorch itself makes: every mode is linear in its
#: input, along one axis after the other.
MODES: dict[str, tuple[tuple[int, ...], Callable[..., torch.Tensor]]] = {
    "upsample_nearest": ((1, 2, 3), _weights(aten.upsample_nearest2d.default, False)),
    "_upsample_nearest_exact": ((1, 2, 3), _weights(aten._upsample_nearest_exact2d.default, False)),
    "upsample_linear": ((1,), _LINEAR),
    "upsample_bilinear": ((2,), _LINEAR),
    "upsample_trilinear": ((3,), _LINEAR),
    "upsample_bicubic": ((2,), _weights(aten.upsample_bicubic2d.default, True)),
    "_upsample_bilinear_aa": ((2,), _weights(aten._upsample_bilinear2d_aa.default, True)),
    "_upsample_bicubic_aa": ((2,), _weights(aten._upsample_bicubic2d_aa.default, True)),
}


def _operator_of(mode: str, rank: int) -> str:
    """upsample_nearest, 2 -> upsample_nearest2d; _upsample_bilinear_aa -> _upsample_bilinear2d_aa."""
    stem, aa = mode.removesuffix("_aa"), mode.endswith("_aa")
    return f"{stem}{rank}d{'_aa' if aa else ''}"


def resized(mode: str, node: fx.Node, importer: Any) -> relax.Expr:
    """Interpolation by PyTorch's own weights (TVM's resize rounds other coordinates)."""
    rank = len(node.meta["val"].shape) - 2
    by_vector = str(node.target).endswith(".vec")
    factors = ["scale_factors"] if by_vector else [f"scales_{axis}" for axis in "dhw"[3 - rank :]]
    if rank == 1 and not by_vector:
        factors = ["scales"]
    aligned = [] if "nearest" in mode else ["align_corners"]
    given = arguments(node, "input", "output_size", *aligned, *factors)
    scales = (given.get("scale_factors") or [None] * rank) if by_vector else [given.get(f) for f in factors]
    x = importer.env[node.args[0]]
    emit, dtype = importer.block_builder.emit, dtype_of(x)
    shape = shape_of(x)
    assert shape is not None
    wide = dtype in NARROW and "nearest" not in mode
    y = emit(relax.op.astype(x, "float32")) if wide else x
    for axis in range(rank):
        size = int(node.meta["val"].shape[2 + axis])
        eye = torch.eye(shape[2 + axis], dtype=torch.float64)[:, None, None, :]
        weights = MODES[mode][1](eye, size, bool(given.get("align_corners", False)), scales[axis])[:, 0, 0, :]
        y = _weighted(emit, y, 2 + axis, weights.T.numpy())
    return emit(relax.op.astype(y, dtype)) if wide else y


def _weighted(emit: Any, x: relax.Expr, axis: int, weights: np.ndarray) -> relax.Expr:
    """Along an axis, each result as the sum of its neighbours times their weights [results, elements]."""
    size = weights.shape[1]
    if weights.shape[0] == size and np.array_equal(weights, np.eye(size)):
        return x
    first = np.array([np.flatnonzero(row)[0] if row.any() else 0 for row in weights])
    last = np.array([np.flatnonzero(row)[-1] if row.any() else 0 for row in weights])
    taps = int((last - first).max()) + 1
    shape = [1] * len(shape_of(x) or ())
    shape[axis] = len(weights)
    total = None
    for tap in range(taps):
        place = np.minimum(first + tap, size - 1)
        # an element that is taken for want of another has no weight, and must not be counted twice
        weight = np.where(first + tap < size, weights[np.arange(len(weights)), place], 0.0)
        piece = emit(relax.op.take(x, relax.const(place.astype("int64"), "int64"), axis=axis))
        if not np.all(weight == 1):
            piece = emit(
                relax.op.multiply(piece, relax.const(weight.reshape(shape).astype(dtype_of(x)), dtype_of(x)))
            )
        total = piece if total is None else emit(relax.op.add(total, piece))
    return total


def average(rank: int, node: fx.Node, importer: Any) -> relax.Expr:
    """An average pool as one that counts padding, times how many elements it took over PyTorch's divisor.

    TVM's importer drops divisor_override, and counts padding otherwise where a window hangs over the end.
    """
    given = arguments(
        node, "x", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"
    )
    kernel = each(given["kernel_size"], rank)
    stride = each(given.get("stride") or kernel, rank)
    padding = each(given.get("padding") or 0, rank)
    x = importer.env[node.args[0]]
    shape, out = shape_of(x), node.meta["val"].shape[-rank:]
    assert shape is not None
    sizes, lead = shape[-rank:], len(shape) - rank
    emit, dtype = importer.block_builder.emit, dtype_of(x)
    floors = is_open(sizes) and not given.get("ceil_mode", False)
    after = [0] * rank  # windows end with the padding, however large the image is
    if not floors:
        needed = [(n - 1) * s + k for n, s, k in zip(out, stride, kernel, strict=True)]
        after = [max(0, n - size - p) for n, size, p in zip(needed, sizes, padding, strict=True)]
    y = emit(relax.op.astype(x, "float32")) if dtype in NARROW else x
    if lead != 2:
        y = emit(relax.op.reshape(y, (1, *expressions(shape))))
    pool = (relax.op.nn.avg_pool1d, relax.op.nn.avg_pool2d, relax.op.nn.avg_pool3d)[rank - 1]

    def pooled(image: Any) -> Any:
        edges = padding if floors else [*padding, *after]
        return emit(pool(image, kernel, stride, edges, [1] * rank, False, True))

    override = given.get("divisor_override")
    if floors and any(padding) and not given.get("count_include_pad", True) and not override:
        ones = emit(relax.op.ones((1, 1, *expressions(sizes)), dtype_of(y)))
        y = emit(relax.op.divide(pooled(y), pooled(ones)))  # by the part of a window that is not padding
    else:
        y = pooled(y)
        if floors or override:
            factor = np.full([1] * rank, math.prod(kernel) / override if override else 1.0)
        else:
            factor = _factor(kernel, stride, padding, sizes, out, given)
        if not np.all(factor == 1):
            y = emit(relax.op.multiply(y, relax.const(factor.astype(dtype_of(y)), dtype_of(y))))
    if lead != 2:
        y = emit(relax.op.reshape(y, expressions((shape_of(y) or ())[1:])))
    return emit(relax.op.astype(y, dtype)) if dtype in NARROW else y


def _factor(
    kernel: list[int], stride: list[int], padding: list[int], sizes: Any, out: Any, given: Any
) -> np.ndarray:
    """Elements of a window over the divisor, for each result (in ATen windows end with the padding)."""
    volume = math.prod(kernel)
    counts = np.ones([1] * len(kernel))
    for axis, (k, s, p, size, n) in enumerate(zip(kernel, stride, padding, sizes, out, strict=True)):
        begin = np.arange(n) * s - p
        end = np.minimum(begin + k, size + p)
        if not given.get("count_include_pad", True):
            begin, end = np.maximum(begin, 0), np.minimum(end, size)
        shape = [1] * len(kernel)
        shape[axis] = n
        counts = counts * (end - begin).reshape(shape)
    factor = volume / counts
    return factor if np.any(factor != factor.flat[0]) else np.full([1] * len(kernel), factor.flat[0])


WINDOWS: dict[str, Callable[[fx.Node, Any], relax.Expr]] = {
    **{
        f"{_operator_of(mode, rank)}.{overload}": partial(resized, mode)
        for mode, (ranks, _) in MODES.items()
        for rank in ranks
        for overload in ("vec", "default")
    },
    **{f"avg_pool{rank}d.default": partial(average, rank) for rank in (1, 2, 3)},
}
