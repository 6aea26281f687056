# SPDX-License-Identifier: Apache-2.0
"""Axes that operators want to be equal: where sizes that a model leaves open have to agree.

A model that names the batch of two inputs differently, or not at all, means one size where it adds them. TVM
tells no shape of their sum. What is asked here makes the model be read again with one symbol for both
(`SizeSpace.agree`), and is a condition of the program that is made so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sizes.open_arithmetic import agree, broadcast_shapes, is_open
from ..sizes.open_size import AnySize

Shapes = Sequence[Sequence[AnySize]]

#: Operators whose operands broadcast to one shape, by their names in Relax.
BROADCASTING = frozenset(
    """add subtract multiply divide floor_divide floor_mod mod power maximum minimum where equal not_equal
    less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor left_shift right_shift log_add_exp""".split()
)


def ask_elementwise(shapes: Shapes) -> None:
    """Operands broadcast.

    Raises
    ------
    ValueError
        They do not, for the sizes that stand for all.
    OpenSizeError
        They do with one symbol for some.
    """
    if any(map(is_open, shapes)):
        broadcast_shapes(*shapes)


def ask_joined(shapes: Shapes, axis: int) -> None:
    """All axes but one are equal."""
    if any(map(is_open, shapes)) and len({len(shape) for shape in shapes}) == 1:
        ndim = len(shapes[0])
        for at, (first, *rest) in enumerate(zip(*shapes, strict=True)):
            if at != axis % ndim:
                _all(first, rest, shapes)


def ask_product(shapes: Shapes) -> None:
    """The last axis of one operand is the last but one of the other; axes before these broadcast."""
    a, b = shapes[:2]
    if (is_open(a) or is_open(b)) and a and b:
        _all(a[-1], [b[max(len(b) - 2, 0)]], shapes)
        if len(a) > 2 or len(b) > 2:
            broadcast_shapes(a[:-2], b[:-2])


def _all(first: AnySize, rest: Sequence[AnySize], shapes: Shapes) -> None:
    for size in rest:
        if not agree(first, size):
            raise ValueError(f"axes of {first} and {size} elements are no one axis, of shapes {shapes}")
