# SPDX-License-Identifier: Apache-2.0
"""Operators that choose among the elements along an axis: where there are none, they have no result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import SizeError
from ..open_size import OpenSize
from ..saved_sizes import condition_text
from ..size_condition import Condition


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
