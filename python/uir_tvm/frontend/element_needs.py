# SPDX-License-Identifier: Apache-2.0
"""Operators that choose among the elements along an axis: where there are none, they have no result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import OpenSizeError, SizeError
from ..sizes.open_size import OpenSize
from ..sizes.saved_sizes import condition_text
from ..sizes.size_condition import Condition


def need_as_many(operator: str, shape: Sequence[Any], axis: int, count: int) -> None:
    """Hold an open size to at least as many elements as an operator takes along an axis.

    Raises
    ------
    OpenSizeError
        There are fewer of what stands for all sizes: the shape by itself says what comes of it.
    """
    size = shape[axis]
    if not isinstance(size, OpenSize):
        return
    elements = "1 element" if count == 1 else f"{count} elements"
    said = f"{operator} of {elements} along axis {axis % len(shape)}"
    if size.space.is_found(size):
        size.space.needs.setdefault(condition_text(Condition(size - count, ">=")), said)
    elif size < count:
        raise OpenSizeError(
            f"{said} is read where there are fewer.",
            where=f"shape {tuple(shape)}",
            need=f"{size} >= {count}",
            remedy="pass more elements",
        )


def need_elements(operator: str, shape: Sequence[Any], axes: Iterable[int], where: str = "") -> None:
    """Refuse sizes of 0 along axes; that sizes which the model finds are none is checked when it runs.

    Parameters
    ----------
    operator : str
        As the source framework names it.
    shape : sequence of int or OpenSize
        Of the operand.
    axes : iterable of int
        Those among whose elements it chooses.
    where : str
        The node, and the line of the model.

    Raises
    ------
    SizeError
        There are none.
    """
    for axis in axes:
        size = shape[axis]
        said = f"{operator} along axis {axis % len(shape)}"
        if isinstance(size, OpenSize) and size.space.is_found(size):
            text = condition_text(Condition(size - 1, ">="))
            size.space.needs.setdefault(text, f"{said}{where and f', {where}'}")
        elif size == 0:  # of open sizes that are not found a condition, where it is not known
            raise SizeError(
                f"{said} has no result: there are no elements.",
                where=where or f"shape {tuple(shape)}",
                need=f"at least one element along axis {axis % len(shape)}, of shape {tuple(shape)}",
                remedy="pass sizes other than 0, or leave the operator out where there is nothing",
            )
