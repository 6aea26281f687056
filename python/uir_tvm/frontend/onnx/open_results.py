# SPDX-License-Identifier: Apache-2.0
"""Shapes of results that follow from open sizes, where ONNX's own inference does not tell them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...sizes.open_arithmetic import broadcast_shapes, is_open
from ...sizes.open_size import AnySize
from ..agreeing_sizes import ask_elementwise, ask_joined, ask_product
from .known import Known, VersionedNode, attributes_of

#: The shapes of a node's operands, by place; the numbers of its second operand -> the shape of its result.
Rule = Callable[[VersionedNode, Sequence[AnySize], Sequence[AnySize]], Sequence[AnySize]]


def reshaped(step: VersionedNode, shape: Sequence[AnySize], target: Sequence[AnySize]) -> Sequence[AnySize]:
    """Reshape: 0 is the operand's size, -1 what is left.

    Raises
    ------
    ArithmeticError
        The elements do not fill such a shape, or any number would do for -1.
    """
    attributes = attributes_of(step)
    copies = not attributes.get("allowzero", 0)
    if copies and any(size == 0 for size in target[len(shape) :]):
        raise ArithmeticError(f"an operand of rank {len(shape)} has no size for the 0 in {list(target)}")
    sizes = [shape[axis] if size == 0 and copies else size for axis, size in enumerate(target)]
    known = math.prod(size for size in sizes if size != -1)
    total = math.prod(shape)
    if any(size == -1 for size in sizes):
        if known == 0:  # what is copied says nothing of what is left
            copied = {axis for axis, size in enumerate(target) if size == 0 and copies}
            known = math.prod(size for axis, size in enumerate(sizes) if size != -1 and axis not in copied)
            total = math.prod(size for axis, size in enumerate(shape) if axis not in copied)
        if known == 0:
            raise ArithmeticError(f"of no elements any size would do for the -1 in {list(target)}")
        left, rest = divmod(total, known)
        if rest != 0:
            raise ArithmeticError(f"{total} elements are no multiple of {known}")
        return [left if size == -1 else size for size in sizes]
    if total != known:
        raise ArithmeticError(f"{total} elements do not fill a shape of {known}")
    return sizes


def _expanded(step: VersionedNode, shape: Sequence[AnySize], target: Sequence[AnySize]) -> Sequence[AnySize]:
    """Expand: what both broadcast to."""
    return broadcast_shapes(shape, target)


def _flattened(step: VersionedNode, shape: Sequence[AnySize], target: Sequence[AnySize]) -> Sequence[AnySize]:
    """Flatten: a matrix."""
    axis = int(attributes_of(step).get("axis", 1))  # type: ignore[call-overload]
    axis += len(shape) if axis < 0 else 0
    return [math.prod(shape[:axis]), math.prod(shape[axis:])]


#: Operator -> its rule, and whether its second operand decides.
RULES: dict[str, tuple[Rule, bool]] = {
    "Expand": (_expanded, True),
    "Flatten": (_flattened, False),
    "Reshape": (reshaped, True),
}


def infer_open(step: VersionedNode, known: Known) -> None:
    """Find the type of a node's result from open sizes.

    Raises
    ------
    ArithmeticError, ValueError
        The operands do not go together, for the sizes that stand for all.
    OpenSizeError
        They do with one symbol for some.
    """
    _agree(step, known)
    found, node = RULES.get(step.node.op_type), step.node
    if found is None:
        return
    rule, decides = found
    shape = known.shape(node.input[0])
    target = known.integers(node.input[1]) if decides and len(node.input) > 1 else []
    if shape is None or target is None or (decides and len(node.input) < 2):
        return
    if is_open(shape) or is_open(target):
        known.add_type(node.output[0], known.element(node.input[0]), rule(step, shape, target))


#: Operators whose operands broadcast to one shape.
_BROADCASTING = frozenset(
    """Add Sub Mul Div Pow Mod Max Min Mean Sum Where Equal Less LessOrEqual Greater GreaterOrEqual And Or Xor
    BitShift BitwiseAnd BitwiseOr BitwiseXor""".split()
)


def _agree(step: VersionedNode, known: Known) -> None:
    """Ask what the operator wants to be equal."""
    operation = step.node.op_type
    if operation not in _BROADCASTING and operation not in ("Concat", "MatMul"):
        return
    shapes = [shape for name in step.node.input if name and (shape := known.shape(name)) is not None]
    if len(shapes) != len(step.node.input) or len(shapes) < 2:
        return
    if operation in _BROADCASTING:
        ask_elementwise(shapes)
    elif operation == "Concat":
        ask_joined(shapes, int(attributes_of(step)["axis"]))  # type: ignore[call-overload]
    else:
        ask_product(shapes)
