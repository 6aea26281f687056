# SPDX-License-Identifier: Apache-2.0
"""Sizes that a project's program learns at a run, and what its kernels' own sizes are in terms of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import attrs
import tvm

from ..errors import ExportError
from ..explain.call_sizes import sizes_at_call
from ..igraph.tir_sizes import MOST
from ..sizes.saved_sizes import holds
from ..sizes.symbolic_shapes import Size, Sizes, value_of

#: What sizes to check with are tried of, in the order of the usual sizes: comparisons stay as they are.
_SMALL = (5, 7, 11, 13, 17, 19, 23)


@attrs.frozen
class OpenSizes:
    """What a program leaves open.

    Parameters
    ----------
    names : tuple of str
        In the order in which they are given.
    conditions : tuple of str
        As `sizes.saved_sizes.holds` reads them: what a run checks before anything else.
    usual : mapping of str to int
        Sizes that meet the conditions of the model.
    """

    names: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    usual: Sizes = attrs.field(factory=dict)

    def nbytes(self, shape: Iterable[Size], dtype: str) -> int:
        """Bytes of a tensor, at the usual sizes where sizes decide them."""
        return math.prod(value_of(size, self.usual) for size in shape) * item_bytes(dtype)

    def meeting(self, sizes: Iterable[Mapping[str, Any]], values: Mapping[str, Size]) -> Self:
        """The same, with what a kernel asks of its sizes, which have these values."""
        conditions = list(self.conditions)
        for row in sizes:
            conditions += range_texts(str(values[row["name"]]), row)
        return attrs.evolve(self, conditions=tuple(dict.fromkeys(conditions)))

    def broken(self, sizes: Sizes) -> str:
        """The first condition that does not hold for some sizes; empty where all do."""
        return next((text for text in self.conditions if not holds(text, sizes)), "")

    def small(self) -> dict[str, int]:
        """Sizes that meet all conditions: small ones where some do, as host models take their time."""
        order = sorted(self.names, key=lambda name: self.usual[name])
        for factor in (1, 2, 3, 4, 8, 16, 32, 64):
            for start in range(len(_SMALL) - len(order) + 1):
                chosen = zip(order, _SMALL[start:], strict=False)
                sizes = {name: prime * factor for name, prime in chosen}
                if not self.broken(sizes):
                    return {name: sizes[name] for name in self.names}
        return dict(self.usual)


def item_bytes(dtype: str) -> int:
    """Bytes of an element."""
    return (int(tvm.DataType(dtype).bits) + 7) // 8


def range_texts(value: str, size: Mapping[str, Any]) -> list[str]:
    """What a kernel asks of one of its sizes (``low``, ``high``, ``multiple_of``), with this value."""
    high = "" if size["high"] >= MOST else f" <= {size['high']}"
    found = [f"{size['low']} <= {value}{high}"] if size["low"] > 0 or high else [f"0 <= {value} <= {MOST}"]
    whole = value if value.isidentifier() else f"({value})"
    return [*found, f"{whole} % {size['multiple_of']} == 0"] if size["multiple_of"] > 1 else found


def launch_values(code: Mapping[str, Any], shapes: Sequence[Sequence[Size]]) -> dict[str, Size]:
    """What the sizes of a kernel are at a call: by their names, in terms of the sizes of its tensors' shapes.

    Parameters
    ----------
    code : mapping
        What is kept of the kernel. Its ``shapes`` have the names that the function gives to its dimensions;
        a size is one of these, or a product of some (`uir_tvm.igraph.tir_sizes.product_of`).
    shapes : sequence of sequence of int or str
        Of the tensors that it is called with.

    Raises
    ------
    ExportError
        No dimension says what a size is.
    """
    return named_values([row["name"] for row in code.get("sizes", ())], code, shapes)


def named_values(
    sizes: Sequence[str], code: Mapping[str, Any], shapes: Sequence[Sequence[Size]]
) -> dict[str, Size]:
    """The same of some sizes that its function has, or that follow from such."""
    if not sizes:
        return {}
    found = sizes_at_call(sizes, code.get("shapes", ()), shapes)
    missing = [name for name, size in found.items() if size is None]
    if missing:
        raise ExportError(
            f"Nothing says what the size {missing[0]} of a kernel is at a call.",
            need="tensors with dimensions that are just this size, or its factors",
            remedy="compile the model again, or for the sizes of the project: --size NAME=37",
        )
    return {name: size for name, size in found.items() if size is not None}
