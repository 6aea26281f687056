# SPDX-License-Identifier: Apache-2.0
"""Softmax and normalisations as TE: reductions of rows, and what every element makes of its row's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tvm import te, tirx


def sum_dtype(dtype: str) -> str:
    """The dtype in which sums are kept."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def extent_of(size: Any) -> Any:
    """An extent as a number; one that a model leaves open as it is."""
    return int(size) if isinstance(size, tirx.IntImm) else size


class RowReductions:
    """Reductions of a tensor along some axes, and values of its rows read back at every element."""

    def __init__(self, x: te.Tensor, axes: Sequence[int]) -> None:
        self.shape = [extent_of(extent) for extent in x.shape]
        self.axes = list(axes)
        self.rows = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        self.dtype = str(x.dtype)
        self.wide = sum_dtype(self.dtype)

    @property
    def share(self) -> Any:
        """What one element of a row is of all, in the dtype of sums."""
        length = prod(self.shape[axis] for axis in self.axes)
        if isinstance(length, int):
            return tirx.const(1.0 / length, self.wide)
        return tirx.const(1.0, self.wide) / length.astype(self.wide)

    def reduce(
        self, function: Callable[..., Any], reducer: Callable[..., Any], name: str, keepdims: bool = False
    ) -> te.Tensor:
        """Reduce function(indices) along the axes."""
        along = {axis: te.reduce_axis((0, self.shape[axis]), name=f"k{axis}") for axis in self.axes}
        kept = range(len(self.shape)) if keepdims else self.rows

        def body(*indices: Any) -> Any:
            at = dict(zip(kept, indices, strict=True)) | along
            return reducer(
                function(*(at[axis] for axis in range(len(self.shape)))), axis=list(along.values())
            )

        return te.compute([1 if axis in along else self.shape[axis] for axis in kept], body, name=name)

    def row(self, function: Callable[..., Any], name: str) -> te.Tensor:
        """One value for each row."""
        return te.compute([self.shape[axis] for axis in self.rows], function, name=name)

    def full(self, function: Callable[..., Any], name: str) -> te.Tensor:
        """One value for each element, from its indices and those of its row."""
        return te.compute(self.shape, lambda *i: function(i, [i[axis] for axis in self.rows]), name=name)

    def along(self, indices: Sequence[Any]) -> list[Any]:
        """Indices of a parameter that has only the reduced axes."""
        return [indices[axis] for axis in self.axes]


def softmax(x: te.Tensor, axis: int, safe: bool = False) -> te.Tensor:
    """exp(x - max) / sum(exp(x - max)) along one axis.

    ``safe``: a row of -inf gives zeros. The maximum is then held at the lowest finite number, which makes
    every exponential 0, and the sum, elsewhere at least 1, is replaced by 1.
    """
    rows = RowReductions(x, [axis % len(x.shape)])
    wide = rows.wide
    peak = rows.reduce(lambda *i: x(*i).astype(wide), te.max, "softmax_max")
    if safe:
        highest, lowest = peak, tirx.min_value(wide)
        peak = rows.row(lambda *r: tirx.max(highest(*r), lowest), "softmax_peak")
    weight = rows.full(lambda i, r: te.exp(x(*i).astype(wide) - peak(*r)), "softmax_exp")
    total = rows.reduce(lambda *i: weight(*i), te.sum, "softmax_sum")
    one = tirx.const(1.0, wide)

    def inverse(*r: Any) -> Any:
        return one / (tirx.Select(total(*r) == 0, one, total(*r)) if safe else total(*r))

    scale = rows.row(inverse, "softmax_scale")
    return rows.full(lambda i, r: (weight(*i) * scale(*r)).astype(rows.dtype), "softmax_norm")


def _scale(rows: RowReductions, squares: te.Tensor, epsilon: float) -> te.Tensor:
    """1 / sqrt(mean square + epsilon) of every row."""
    share, least = rows.share, tirx.const(epsilon, rows.wide)
    return rows.row(lambda *r: te.rsqrt(squares(*r) * share + least), "norm_scale")


def _standardised(rows: RowReductions, x: te.Tensor, epsilon: float) -> tuple[te.Tensor, te.Tensor]:
    """x - mean, and what makes its variance 1; the variance from centred values."""
    wide, share = rows.wide, rows.share
    total = rows.reduce(lambda *i: x(*i).astype(wide), te.sum, "norm_sum")
    mean = rows.row(lambda *r: total(*r) * share, "norm_mean")
    centred = rows.full(lambda i, r: x(*i).astype(wide) - mean(*r), "norm_centred")
    squares = rows.reduce(lambda *i: centred(*i) * centred(*i), te.sum, "norm_squares")
    return centred, _scale(rows, squares, epsilon)


def _affine(
    rows: RowReductions, value: Any, gamma: te.Tensor | None, beta: te.Tensor | None, at: Sequence[Any]
) -> Any:
    """value * gamma + beta, without those that are None, in the dtype of the rows."""
    if gamma is not None:
        value = value * gamma(*at).astype(rows.wide)
    if beta is not None:
        value = value + beta(*at).astype(rows.wide)
    return value.astype(rows.dtype)


def layer_norm(
    x: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, axes: Sequence[int], epsilon: float
) -> te.Tensor:
    """(x - mean) / sqrt(mean((x - mean)^2) + epsilon) * gamma + beta; the variance from centred values."""
    rows = RowReductions(x, axes)
    centred, scale = _standardised(rows, x, epsilon)

    def result(i: Sequence[Any], r: Sequence[Any]) -> Any:
        return _affine(rows, centred(*i) * scale(*r), gamma, beta, rows.along(i))

    return rows.full(result, "norm")


def rms_norm(x: te.Tensor, gamma: te.Tensor, axes: Sequence[int], epsilon: float) -> te.Tensor:
    """x / sqrt(mean(x^2) + epsilon) * gamma (arXiv 1910.07467)."""
    rows = RowReductions(x, axes)
    wide = rows.wide
    squares = rows.reduce(lambda *i: x(*i).astype(wide) * x(*i).astype(wide), te.sum, "norm_squares")
    scale = _scale(rows, squares, epsilon)

    def result(i: Sequence[Any], r: Sequence[Any]) -> Any:
        value = x(*i).astype(wide) * scale(*r) * gamma(*rows.along(i)).astype(wide)
        return value.astype(rows.dtype)

    return rows.full(result, "norm")


def log_softmax(x: te.Tensor, axis: int) -> te.Tensor:
    """x - max - log(sum(exp(x - max))) along one axis."""
    rows = RowReductions(x, [axis % len(x.shape)])
    wide = rows.wide
    peak = rows.reduce(lambda *i: x(*i).astype(wide), te.max, "softmax_max")
    total = rows.reduce(
        lambda *i: te.exp(x(*i).astype(wide) - peak(*(i[axis] for axis in rows.rows))), te.sum, "softmax_sum"
    )
    scale = rows.row(lambda *r: te.log(total(*r)), "softmax_log")
    return rows.full(
        lambda i, r: (x(*i).astype(wide) - peak(*r) - scale(*r)).astype(rows.dtype), "log_softmax"
    )


def group_norm(
    x: te.Tensor, gamma: te.Tensor | None, beta: te.Tensor | None, groups: int, epsilon: float
) -> te.Tensor:
    """`layer_norm` over groups of channels, (N, C, ...), with a scale and a shift per channel."""
    batch, channels, *space = (extent_of(extent) for extent in x.shape)
    inner = channels // groups
    grouped = te.compute(
        [batch, groups, inner, *space], lambda n, g, c, *i: x(n, g * inner + c, *i), name="grouped"
    )
    rows = RowReductions(grouped, range(2, 3 + len(space)))
    centred, scale = _standardised(rows, grouped, epsilon)

    def result(n: Any, c: Any, *i: Any) -> Any:
        group, channel = tirx.floordiv(c, inner), tirx.floormod(c, inner)
        value = centred(n, group, channel, *i) * scale(n, group)
        return _affine(rows, value, gamma, beta, [c])

    return te.compute(x.shape, result, name="norm")
