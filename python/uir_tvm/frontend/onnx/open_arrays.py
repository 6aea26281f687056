# SPDX-License-Identifier: Apache-2.0
"""Arrays of whole numbers of which some are sizes that a model leaves open, and the nodes that compute them.

Such an array has the dtype ``object``; its elements are ``int`` and `OpenSize`. What is computed of numbers
alone is an ordinary array again.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ...sizes.open_arithmetic import least, most, quotient
from ...sizes.open_size import AnySize
from .constants import by_reference, evaluate
from .known import Known, VersionedNode, attributes_of, is_open, of_sizes

#: Element types in which sizes are counted.
WHOLE = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


def _absolute(a: AnySize) -> AnySize:
    return a if a >= 0 else -a


def _chosen(condition: Any, a: AnySize, b: AnySize) -> AnySize:
    return a if condition else b


def _several(function: Callable[[AnySize, AnySize], AnySize]) -> Callable[..., AnySize]:
    """An operator of any number of operands."""
    return lambda *given: functools.reduce(function, given)


#: Operators of elements, which broadcast.
ELEMENTS: dict[str, Callable[..., Any]] = {
    "Abs": _absolute,
    "Add": operator.add,
    "Div": quotient,
    "Equal": operator.eq,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Max": _several(most),
    "Min": _several(least),
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Sub": operator.sub,
    "Sum": _several(operator.add),
    "Where": _chosen,
}
#: Operators that fold elements along axes, and what they give of none.
FOLDS: dict[str, tuple[Callable[[AnySize, AnySize], AnySize], int]] = {
    "ReduceProd": (operator.mul, 1),
    "ReduceSum": (operator.add, 0),
}
#: Operators that move elements -> which of their operands have them; None: all.
MOVES: dict[str, int | None] = {
    **dict.fromkeys(
        """Expand Flatten Gather GatherElements GatherND Identity Reshape Slice Split Squeeze Tile Transpose
        Unsqueeze""".split(),
        0,
    ),
    "Concat": None,
}


def evaluate_any(step: VersionedNode, known: Known) -> dict[str, np.ndarray] | None:
    """`evaluate`, also of constants that hold open sizes."""
    names = [name for name in step.node.input if name]
    if step.node.op_type in ("Shape", "Size") or not any(map(known.is_open, names)):
        return evaluate(step, known)
    if not all(map(known.is_constant, names)):
        return None
    made = evaluate_open(step, known) or {}
    for name, array in made.items():
        if not is_open(array) and known.element(name):
            made[name] = array.astype(helper.tensor_dtype_to_np_dtype(known.element(name)))
    return made or None


def evaluate_open(step: VersionedNode, known: Known) -> dict[str, np.ndarray] | None:
    """Outputs of a node of constants that hold open sizes; None where they are no whole numbers of such.

    Raises
    ------
    ArithmeticError
        What is computed is no size for all sizes.
    """
    node = step.node
    arrays = [known.array(name) if name else None for name in node.input]
    operation = node.op_type
    made: Sequence[np.ndarray] | None = None
    if operation in ("Cast", "CastLike"):
        made = _cast(step, arrays)
    elif operation in ELEMENTS:
        apply = np.frompyfunc(ELEMENTS[operation], len(arrays), 1)
        made = [np.asarray(apply(*map(_objects, arrays)), object)]
    elif operation in FOLDS:
        made = [_folded(step, arrays)]
    elif operation in MOVES:
        made = _moved(step, arrays, MOVES[operation])
    if made is None:
        return None
    names = [name for name in node.output if name]
    return dict(zip(names, map(of_sizes, made), strict=False))


def _objects(array: np.ndarray | None) -> np.ndarray:
    """Elements as Python's own numbers, which compute with open sizes."""
    assert array is not None
    return array.astype(object)


def _cast(step: VersionedNode, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray] | None:
    """Whole numbers stay; whether they are 0 is asked. Sizes are no floats."""
    if step.node.op_type == "CastLike":
        like = arrays[1]
        to = 0 if like is None or is_open(like) else helper.np_dtype_to_tensor_dtype(like.dtype)
    else:
        to = int(attributes_of(step)["to"])  # type: ignore[call-overload]
    if to == onnx.TensorProto.BOOL:
        return [np.frompyfunc(bool, 1, 1)(_objects(arrays[0]))]
    return [_objects(arrays[0])] if to in WHOLE else None


def _folded(step: VersionedNode, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
    """ReduceSum, ReduceProd."""
    function, empty = FOLDS[step.node.op_type]
    attributes = attributes_of(step)
    data, given = _objects(arrays[0]), arrays[1] if len(arrays) > 1 else attributes.get("axes")
    axes: Any = (
        () if given is None else tuple(int(axis) % data.ndim for axis in np.asarray(given).reshape(-1))
    )
    if not axes and attributes.get("noop_with_empty_axes", 0):
        return data
    axes = axes or tuple(range(data.ndim))
    keep = bool(attributes.get("keepdims", 1))
    return np.asarray(np.frompyfunc(function, 2, 1).reduce(data, axis=axes, initial=empty, keepdims=keep))


def _moved(
    step: VersionedNode, arrays: Sequence[np.ndarray | None], place: int | None
) -> list[np.ndarray] | None:
    """What ONNX's reference implementation does to the numbers of the elements, done to the elements."""
    names, count = list(step.node.input), 0
    feeds: dict[str, np.ndarray] = {}
    elements: list[np.ndarray] = []
    for index, (name, array) in enumerate(zip(names, arrays, strict=True)):
        if array is None:
            continue
        if place is None or index == place:
            if name not in feeds:
                feeds[name] = np.arange(count, count + array.size, dtype=np.int64).reshape(array.shape)
                elements.append(_objects(array).reshape(-1))
                count += array.size
        elif is_open(array) or name in feeds:
            return None
        else:
            feeds[name] = array
    numbers = by_reference(step, feeds)
    if numbers is None:
        return None
    every = np.concatenate(elements) if elements else np.empty(0, object)
    return [every[np.asarray(each)] for each in numbers]
