# SPDX-License-Identifier: Apache-2.0
"""What is asked of ONNX nodes once their inputs are known: numbers that an operator does not take."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ShapeError, SizeError
from ...sizes.open_size import OpenSize
from .known import Known, VersionedNode
from .windows import CORRECTED


def _top_k(step: VersionedNode, known: Known) -> None:
    """As many elements as there are along the axis, at most.

    Raises
    ------
    SizeError
    """
    node = step.node
    numbers = {attribute.name: attribute.i for attribute in node.attribute}
    given = known.integers(node.input[1]) if len(node.input) > 1 else [numbers.get("k", 0)]
    shape = known.shape(node.input[0])
    if not given or not shape:
        return
    count, size = given[0], shape[numbers.get("axis", -1)]
    if isinstance(count, OpenSize) or isinstance(size, OpenSize) or 0 <= count <= size:
        return
    raise SizeError(
        f"TopK of {count} elements, where the axis has {size}.",
        where=step.text,
        need=f"k from 0 to {size}",
        remedy="pass another k, or more elements",
    )


def _range(step: VersionedNode, known: Known) -> None:
    """Steps that lead somewhere.

    Raises
    ------
    ShapeError
    """
    array = known.array(step.node.input[2])
    if array is None or known.is_open(step.node.input[2]) or array.reshape(-1)[0]:
        return
    raise ShapeError(
        "Range in steps of 0 has no end.",
        where=step.text,
        need="a delta other than 0",
        remedy="pass another delta",
    )


#: By operator; called after its outputs' types are inferred.
CHECKS: dict[str, Callable[[VersionedNode, Known], None]] = {
    **CORRECTED,
    "Range": _range,
    "TopK": _top_k,
}
