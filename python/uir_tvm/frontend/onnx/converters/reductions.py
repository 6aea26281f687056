# SPDX-License-Identifier: Apache-2.0
"""Reductions along constant axes, running sums and products, norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from tvm import relax

from .node import Converter, OnnxNode, number

#: One tensor reduced along axes, dimensions kept or not.
Reduce = Callable[[OnnxNode, Any, list[int], bool], Any]


def _axes(node: OnnxNode) -> list[int] | None:
    """The axes of a reduction; an empty list where it does nothing, None where they are not known."""
    rank = len(node.shape())
    if node.input(1) is not None:
        given = node.constant(1)
        if given is None:
            return None
        axes = [node.axis(int(axis)) for axis in given.reshape(-1)]
    else:
        axes = [node.axis(int(axis)) for axis in node.attributes.get("axes") or ()]
    if axes or node.attributes.get("noop_with_empty_axes", 0):
        return axes
    return list(range(rank))


def _plain(operator: Callable[..., Any]) -> Reduce:
    return lambda node, data, axes, keep: node.emit(operator(data, axes, keepdims=keep))


def _l1(node: OnnxNode, data: Any, axes: list[int], keep: bool) -> Any:
    return _SUM(node, node.emit(relax.op.abs(data)), axes, keep)


def _sum_square(node: OnnxNode, data: Any, axes: list[int], keep: bool) -> Any:
    return _SUM(node, node.emit(relax.op.multiply(data, data)), axes, keep)


def _l2(node: OnnxNode, data: Any, axes: list[int], keep: bool) -> Any:
    return relax.op.sqrt(_sum_square(node, data, axes, keep))


def _log_sum(node: OnnxNode, data: Any, axes: list[int], keep: bool) -> Any:
    return relax.op.log(_SUM(node, data, axes, keep))


def _log_sum_exp(node: OnnxNode, data: Any, axes: list[int], keep: bool) -> Any:
    """log(sum(exp(x - m))) + m, with m the largest where that is finite."""
    if 0 in node.shape():
        return relax.op.log(_SUM(node, node.emit(relax.op.exp(data)), axes, keep))
    largest = node.emit(relax.op.max(data, axes, keepdims=True))
    finite = node.emit(relax.op.isfinite(largest))
    shift = node.emit(relax.op.where(finite, largest, number(0, node.dtype())))
    total = _SUM(node, node.emit(relax.op.exp(relax.op.subtract(data, shift))), axes, keep)
    if not keep:
        shift = node.emit(relax.op.reshape(shift, total.ty.shape))
    return relax.op.add(relax.op.log(total), shift)


def _extreme(operator: Callable[..., Any]) -> Reduce:
    """Largest or smallest; of bools by numbers."""

    def reduce(node: OnnxNode, data: Any, axes: list[int], keep: bool) -> Any:
        if node.dtype() != "bool":
            return node.emit(operator(data, axes, keepdims=keep))
        numbers = node.emit(relax.op.astype(data, "int8"))
        return relax.op.astype(node.emit(operator(numbers, axes, keepdims=keep)), "bool")

    return reduce


_SUM = _plain(relax.op.sum)
#: Operator -> what it does, the result over no elements, whether it does something without axes.
REDUCE: dict[str, tuple[Reduce, float, Callable[[OnnxNode, Any], Any] | None]] = {
    "ReduceL1": (_l1, 0.0, lambda n, x: relax.op.abs(x)),
    "ReduceL2": (_l2, 0.0, lambda n, x: relax.op.abs(x)),
    "ReduceLogSum": (_log_sum, -np.inf, lambda n, x: relax.op.log(x)),
    "ReduceLogSumExp": (_log_sum_exp, -np.inf, None),
    "ReduceMax": (_extreme(relax.op.max), -np.inf, None),
    "ReduceMean": (_plain(relax.op.mean), np.nan, None),
    "ReduceMin": (_extreme(relax.op.min), np.inf, None),
    "ReduceProd": (_plain(relax.op.prod), 1.0, None),
    "ReduceSum": (_SUM, 0.0, None),
    "ReduceSumSquare": (_sum_square, 0.0, lambda n, x: relax.op.multiply(x, x)),
}


def reduction(node: OnnxNode) -> list[Any] | None:
    """A reduction along constant axes."""
    apply, empty, alone = REDUCE[node.step.node.op_type]
    axes = _axes(node)
    if axes is None:
        return None
    keep = bool(node.attributes.get("keepdims", 1))
    shape, dtype = node.result()
    if 0 in node.shape() and shape is not None:
        return [relax.op.full(shape, relax.const(_of_nothing(empty, dtype), dtype), dtype)]
    if not axes:
        return [alone(node, node.input(0)) if alone else node.input(0)]
    return [apply(node, node.input(0), axes, keep)]


def _of_nothing(value: float, dtype: str) -> np.ndarray:
    """The result over no elements: the extremes of integers where floats have infinities, 0 for no number."""
    numpy = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if numpy.kind in "iu" and np.isnan(value):
        return np.zeros((), numpy)
    if numpy.kind in "iu" and np.isinf(value):
        bounds = np.iinfo(numpy)
        return np.array(bounds.min if value < 0 else bounds.max, numpy)
    return np.array(value > 0 if numpy.kind == "b" else value).astype(numpy)


def running(operator: Callable[..., Any]) -> Converter:
    """CumSum or CumProd along a constant axis, from either side, with or without the element itself."""

    def convert(node: OnnxNode) -> list[Any] | None:
        axis = node.constant(1)
        if axis is None:
            return None
        along = node.axis(int(axis.reshape(-1)[0]))
        data, dtype = node.input(0), node.dtype()
        backwards = bool(node.attributes.get("reverse", 0))
        exclusive = bool(node.attributes.get("exclusive", 0))
        if not backwards:
            return [operator(data, along, dtype, exclusive=exclusive)]
        turn = relax.const(np.arange(node.shape()[along] - 1, -1, -1, dtype=np.int64))
        data = node.emit(relax.op.take(data, turn, axis=along))
        data = node.emit(operator(data, along, dtype, exclusive=exclusive))
        return [relax.op.take(data, turn, axis=along)]

    return convert


def lp_normalization(node: OnnxNode) -> list[Any]:
    """LpNormalization: x over its norm; 0 where the norm is."""
    axis = node.axis(int(node.attributes.get("axis", -1)))
    norm = (_l1 if node.attributes.get("p", 2) == 1 else _l2)(node, node.input(0), [axis], True)
    zero = number(0, node.dtype())
    norm = node.emit(norm)
    safe = relax.op.where(relax.op.equal(norm, zero), number(1, node.dtype()), norm)
    return [relax.op.divide(node.input(0), safe)]


def batch_normalization(node: OnnxNode) -> list[Any] | None:
    """BatchNormalization in training mode: by the batch's own mean and variance, running ones beside it."""
    if not node.attributes.get("training_mode", 0):
        return None
    data, scale, bias, mean, variance = node.inputs[:5]
    rank, dtype = len(node.shape()), node.dtype()
    axes = [axis for axis in range(rank) if axis != 1]
    channels = node.shape()[1]
    wide = [1, channels] + [1] * (rank - 2)
    batch_mean = node.emit(relax.op.mean(data, axes, keepdims=True))
    centred = node.emit(relax.op.subtract(data, batch_mean))
    spread = node.emit(relax.op.mean(relax.op.multiply(centred, centred), axes, keepdims=True))
    root = relax.op.sqrt(relax.op.add(spread, number(float(node.attributes["epsilon"]), dtype)))
    scaled = relax.op.multiply(relax.op.divide(centred, root), relax.op.reshape(scale, wide))
    result = node.emit(relax.op.add(scaled, relax.op.reshape(bias, wide)))
    momentum = float(node.attributes["momentum"])

    def moved(old: Any, new: Any) -> Any:
        new = relax.op.astype(relax.op.reshape(new, (channels,)), old.ty.dtype.dtype)
        kept = relax.op.multiply(old, number(momentum, old.ty.dtype.dtype))
        return node.emit(relax.op.add(kept, relax.op.multiply(new, number(1 - momentum, old.ty.dtype.dtype))))

    moving = [moved(mean, batch_mean), moved(variance, spread)] if len(node.step.node.output) > 1 else []
    return [result, *moving]


REDUCTIONS: dict[str, Converter] = {
    **dict.fromkeys(REDUCE, reduction),
    "BatchNormalization": batch_normalization,
    "CumProd": running(relax.op.cumprod),
    "CumSum": running(relax.op.cumsum),
    "LpNormalization": lp_normalization,
}
