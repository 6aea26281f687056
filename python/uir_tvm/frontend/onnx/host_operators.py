# SPDX-License-Identifier: Apache-2.0
"""Operators that run outside kernels: their results' shapes depend on data, or nothing converts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import ShapeError
from ..open_model import HostFunction
from .constants import by_reference
from .known import VersionedNode, attributes_of

Arrays = Sequence[np.ndarray | None]


def non_zero(step: VersionedNode) -> HostFunction:
    """NonZero(x): a column of coordinates for each element that is not zero."""

    def compute(given: Arrays) -> list[np.ndarray]:
        (x,) = _present(given)
        # a scalar has no coordinates; it is found or not
        return [np.array(np.nonzero(x), np.int64) if x.ndim else np.zeros((0, int(x != 0)), np.int64)]

    return compute


def compress(step: VersionedNode) -> HostFunction:
    """Compress(x, condition): the rows of an axis, or the elements, for which the condition holds."""
    axis = attributes_of(step).get("axis")

    def compute(given: Arrays) -> list[np.ndarray]:
        x, condition = _present(given)
        return [np.compress(condition.reshape(-1), x, None if axis is None else int(axis))]  # type: ignore[call-overload]

    return compute


def unique(step: VersionedNode) -> HostFunction:
    """Unique(x): values, first indices, inverse and counts; sorted, or in the order of the first ones."""
    attributes = attributes_of(step)
    axis, ordered = attributes.get("axis"), bool(attributes.get("sorted", 1))
    wanted = [bool(name) for name in [*step.node.output, "", "", ""][:4]]

    def compute(given: Arrays) -> list[np.ndarray]:
        (x,) = _present(given)
        along = None if axis is None else int(axis)  # type: ignore[call-overload]
        values, first, inverse, counts = np.unique(x, True, True, True, axis=along)
        inverse = inverse.reshape(-1)
        if not ordered:
            order = np.argsort(first)
            places = np.empty_like(order)
            places[order] = np.arange(len(order))
            values = np.take(values, order, axis=along or 0)
            first, inverse, counts = first[order], places[inverse], counts[order]
        found = [values, *(part.astype(np.int64) for part in (first, inverse, counts))]
        return [part for part, want in zip(found, wanted, strict=True) if want]

    return compute


def non_max_suppression(step: VersionedNode) -> HostFunction:
    """NonMaxSuppression: [batch, class, box] of the boxes that stay, by class in the order of scores."""
    center = bool(attributes_of(step).get("center_point_box", 0))

    def compute(given: Arrays) -> list[np.ndarray]:
        boxes, scores, most, overlap, least = [*given, *[None] * 5][:5]
        assert boxes is not None and scores is not None
        count = 0 if most is None else int(most.reshape(-1)[0])
        limit = 0.0 if overlap is None else float(overlap.reshape(-1)[0])
        bound = -np.inf if least is None else float(least.reshape(-1)[0])
        rows = [
            [batch, kind, box]
            for batch in range(scores.shape[0])
            for kind in range(scores.shape[1])
            for box in _kept(corners(boxes[batch], center), scores[batch, kind], count, limit, bound)
        ]
        return [np.array(rows, np.int64).reshape(-1, 3)]

    return compute


def corners(boxes: np.ndarray, center: bool) -> np.ndarray:
    """Boxes as their least and greatest corner, of any two opposite corners or of center and size."""
    if center:
        half = boxes[:, 2:] / 2
        return np.concatenate([boxes[:, :2] - half, boxes[:, :2] + half], axis=1)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return np.concatenate([low, high], axis=1)


def _kept(boxes: np.ndarray, scores: np.ndarray, count: int, limit: float, bound: float) -> list[int]:
    """The best boxes of which no two overlap more than the limit."""
    (passing,) = np.nonzero(scores > bound)
    order = passing[np.argsort(-scores[passing], kind="stable")]
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    kept: list[int] = []
    while len(order) and len(kept) < count:
        best, rest = order[0], order[1:]
        kept.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[rest, :2])
        high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        union = areas[best] + areas[rest] - shared
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(union > 0, shared / union, 0)
        order = rest[ratio <= limit]
    return kept


def by_standard(step: VersionedNode) -> HostFunction:
    """An operator that nothing converts, by the standard's reference implementation."""

    def compute(given: Arrays) -> list[np.ndarray]:
        feeds = {
            name: array
            for name, array in zip(step.node.input, given, strict=True)
            if name and array is not None
        }
        made = by_reference(step, feeds)
        if made is None:
            shapes = ", ".join(f"{name}: {array.dtype} {list(array.shape)}" for name, array in feeds.items())
            raise ShapeError(
                f"ONNX's reference implementation cannot compute {step.operator}",
                where=f"{step.text}; {shapes}",
                need="operands as the ONNX standard asks",
                remedy="check the model's inputs, or export the model with other operators",
            )
        return [np.asarray(part) for part in made]

    return compute


def _present(given: Arrays) -> list[np.ndarray]:
    return [array for array in given if array is not None]


#: Why an operator runs outside kernels.
RAGGED, UNCONVERTED = "the shape of its result depends on data", "it has no converter"
#: Operator whose result's shape depends on data -> what computes a node of it.
HOST: dict[str, Callable[[VersionedNode], HostFunction]] = {
    "Compress": compress,
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "Unique": unique,
}
