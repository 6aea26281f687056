# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals whose tensors are known one by one: they vanish before the import."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from onnx import helper

from .known import VersionedNode, attributes_of

if TYPE_CHECKING:
    from .simplifier import Simplifier


def _operand(step: VersionedNode, simplifier: Simplifier) -> list[str] | None:
    return simplifier.sequences.get(step.node.input[0])


def _place(step: VersionedNode, simplifier: Simplifier, number: int) -> int | None:
    """A constant position, None where there is none or it is no constant."""
    found = simplifier.known.integers(step.node.input[number])
    return None if found is None else found[0]


def _same(value: str, step: VersionedNode, simplifier: Simplifier) -> None:
    simplifier.run(VersionedNode(helper.make_node("Identity", [value], [step.node.output[0]]), 13))


def construct(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SequenceConstruct(a, b): the sequence of these."""
    simplifier.sequences[step.node.output[0]] = list(step.node.input)
    return True


def empty(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SequenceEmpty(): the sequence of nothing."""
    simplifier.sequences[step.node.output[0]] = []
    return True


def insert(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SequenceInsert(s, a, i): the sequence with one tensor more."""
    values = _operand(step, simplifier)
    place = _place(step, simplifier, 2) if len(step.node.input) > 2 else len(values or ())
    if values is None or place is None:
        return False
    place += len(values) if place < 0 else 0
    simplifier.sequences[step.node.output[0]] = [*values[:place], step.node.input[1], *values[place:]]
    return True


def erase(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SequenceErase(s, i): the sequence with one tensor less."""
    values = _operand(step, simplifier)
    place = _place(step, simplifier, 1) if len(step.node.input) > 1 else -1
    if values is None or place is None:
        return False
    simplifier.sequences[step.node.output[0]] = [v for i, v in enumerate(values) if i != place % len(values)]
    return True


def at(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SequenceAt(s, i): one tensor."""
    values, place = _operand(step, simplifier), _place(step, simplifier, 1)
    if values is None or place is None:
        return False
    if not -len(values) <= place < len(values):
        simplifier.refuse(step, f"asks for tensor {place} of {len(values)}", "a position inside the sequence")
    _same(values[place], step, simplifier)
    return True


def length(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SequenceLength(s): a constant."""
    values = _operand(step, simplifier)
    if values is None:
        return False
    simplifier.known.add_array(step.node.output[0], np.array(len(values), np.int64))
    return True


def concat(step: VersionedNode, simplifier: Simplifier) -> bool:
    """ConcatFromSequence(s): Concat, or of each with a new axis."""
    values = _operand(step, simplifier)
    if not values:
        return False
    attributes = attributes_of(step)
    if attributes.get("new_axis"):
        axes = simplifier.constant(np.array([attributes["axis"]], np.int64))
        values = [simplifier.emit("Unsqueeze", [value, axes], step, version=13) for value in values]
    node = helper.make_node("Concat", values, [step.node.output[0]], axis=attributes["axis"])
    simplifier.run(VersionedNode(node, 13))
    return True


def split(step: VersionedNode, simplifier: Simplifier) -> bool:
    """SplitToSequence(x, sizes): slices of x."""
    known, node, attributes = simplifier.known, step.node, attributes_of(step)
    shape = known.shape(node.input[0])
    sizes = known.array(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    if shape is None or (len(node.input) > 1 and node.input[1] and sizes is None):
        return False
    axis = int(attributes.get("axis", 0)) % len(shape)  # type: ignore[call-overload]
    extent, step_size = shape[axis], 1
    if sizes is not None and sizes.ndim:
        bounds = np.concatenate([[0], np.cumsum(sizes)])
    else:
        step_size = int(sizes) if sizes is not None else 1
        bounds = np.array([*range(0, extent, step_size), extent])
    pieces = []
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        bound = [simplifier.constant(np.array([number], np.int64)) for number in (low, high, axis)]
        pieces.append(simplifier.emit("Slice", [node.input[0], *bound], step, version=13))
    if sizes is None and not attributes.get("keepdims", 1):
        axes = simplifier.constant(np.array([axis], np.int64))
        pieces = [simplifier.emit("Squeeze", [piece, axes], step, version=13) for piece in pieces]
    simplifier.sequences[node.output[0]] = pieces
    return True


def identity(step: VersionedNode, simplifier: Simplifier) -> bool:
    """Identity of a sequence, or an optional that holds one."""
    values = _operand(step, simplifier) if step.node.input else None
    if values is None:
        return False
    simplifier.sequences[step.node.output[0]] = values
    return True


def optional(step: VersionedNode, simplifier: Simplifier) -> bool:
    """Optional(x), OptionalGetElement(x): x itself; Optional() stays."""
    if not step.node.input or not step.node.input[0]:
        return False
    if identity(step, simplifier):
        return True
    if simplifier.known.shape(step.node.input[0]) is None:
        return False
    _same(step.node.input[0], step, simplifier)
    return True


def has_element(step: VersionedNode, simplifier: Simplifier) -> bool:
    """OptionalHasElement(x): a constant where x is a tensor or a sequence, or nothing."""
    node = step.node
    if node.input and node.input[0]:
        name = node.input[0]
        if name not in simplifier.sequences and simplifier.known.shape(name) is None:
            return False
    simplifier.known.add_array(node.output[0], np.array(bool(node.input and node.input[0])))
    return True


SEQUENCES: dict[str, Callable[[VersionedNode, Simplifier], bool]] = {
    "ConcatFromSequence": concat,
    "Identity": identity,
    "Optional": optional,
    "OptionalGetElement": optional,
    "OptionalHasElement": has_element,
    "SequenceAt": at,
    "SequenceConstruct": construct,
    "SequenceEmpty": empty,
    "SequenceErase": erase,
    "SequenceInsert": insert,
    "SequenceLength": length,
    "SplitToSequence": split,
}
