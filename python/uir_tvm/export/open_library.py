# SPDX-License-Identifier: Apache-2.0
"""Calls of the library whose attributes sizes decide, as views in terms of these sizes.

For numbers the native code says the same (`src/library/product_views.h`); it joins batch dimensions where
they lie so that they are one, which sizes do not always decide.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..sizes.saved_sizes import size_text
from ..sizes.symbolic_shapes import Size, in_terms_of, symbols_of, value_of

#: Positions of operands among the strides of a batch dimension.
_PLACES = {"a": 0, "b": 1, "out": 2, "residual": 2}


def is_open(text: str) -> bool:
    """Whether attributes (JSON) have expressions of sizes."""
    return any(_texts(value) for key, value in json.loads(text).items() if key not in _NAMES)


@attrs.frozen
class SizedView:
    """Where an operand lies in the tensor that holds it, in elements."""

    role: str
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size


@attrs.frozen
class BatchDimension:
    """A batch dimension of a product: its extent, and the strides of a, b and out; 0 repeats."""

    extent: Size
    strides: tuple[Size, Size, Size]


@attrs.frozen
class SizedProduct:
    """A product whose attributes sizes decide.

    Parameters
    ----------
    fields : mapping
        Its attributes (`uir_tvm.library.attrs.MatmulAttrs`).
    """

    fields: Mapping[str, Any]

    @staticmethod
    def of(text: str) -> SizedProduct:
        """The product of attributes as JSON."""
        return SizedProduct(json.loads(text))

    @property
    def alpha(self) -> float:
        """The factor of the product."""
        return float(self.fields["alpha"])

    @property
    def term(self) -> str:
        """The role of what is added; empty where nothing is."""
        return "bias" if self.fields["bias"] else "residual" if self.fields["residual"] != "none" else ""

    @property
    def roles(self) -> list[str]:
        """Of the tensors of a call, in their order."""
        return ["a", "b", *([self.term] if self.term else []), "out"]

    @property
    def batch(self) -> tuple[BatchDimension, ...]:
        """Batch dimensions of more than one product."""
        strides = zip(*(self.fields[name][1] for name in ("a", "b", "out")), strict=True)
        rows = zip(self.fields["batch"], strides, strict=False)
        return tuple(
            BatchDimension(_size(extent), (_size(a), _size(b), _size(out)))
            for extent, (a, b, out) in rows
            if extent != 1
        )

    def view(
        self, role: str, batch: Sequence[BatchDimension], shift: Sequence[Size] = (0, 0, 0)
    ) -> SizedView:
        """An operand over some batch dimensions, moved by a number of elements of a, b and out."""
        m, n, k = (_size(self.fields[name]) for name in "mnk")
        if role == "bias":
            return SizedView(role, (n,), (1,), 0)
        place = _PLACES[role]
        offset, strides = self.fields["out" if role == "residual" else role]
        rows, columns = k if role == "b" else m, k if role == "a" else n
        shape: list[Size] = [1 if each.strides[place] == 0 else each.extent for each in batch]
        # a dimension that repeats has no stride of its own: as if it were contiguous
        inner, steps = times(rows, columns), list[Size]()
        for each, extent in zip(reversed(batch), reversed(shape), strict=True):
            steps.append(inner if each.strides[place] == 0 else each.strides[place])
            inner = times(inner, extent)
        lowest = tuple(map(_size, strides[-2:]))
        return SizedView(
            role, (*shape, rows, columns), (*reversed(steps), *lowest), plus(_size(offset), shift[place])
        )


def convolution_shapes(text: str) -> tuple[tuple[Size, ...], ...]:
    """Shapes of input, weight, [bias] and output of a convolution whose input sizes decide."""
    fields = json.loads(text)
    given, weight = (tuple(map(_size, fields[name])) for name in ("input", "weight"))
    above, left, below, right = fields["padding"]
    rows = zip(
        given[2:],
        weight[2:],
        fields["strides"],
        fields["dilation"],
        (above + below, left + right),
        strict=True,
    )
    spatial = tuple(
        in_terms_of(f"(size + {padding - dilation * (int(kernel) - 1) - 1}) // {stride} + 1", {"size": size})
        for size, kernel, stride, dilation, padding in rows
    )
    bias = ((weight[0],),) if fields["bias"] else ()
    return (given, weight, *bias, (given[0], weight[0], *map(_number, spatial)))


def times(one: Size, other: Size) -> Size:
    """The product of two sizes."""
    if isinstance(one, int) and isinstance(other, int):
        return one * other
    if 1 in (one, other):
        return other if one == 1 else one
    return in_terms_of("one * other", {"one": one, "other": other})


def plus(one: Size, other: Size) -> Size:
    """The sum of two sizes."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    if 0 in (one, other):
        return other if one == 0 else one
    return in_terms_of("one + other", {"one": one, "other": other})


#: Fields of attributes that are texts and no expressions.
_NAMES = ("activation", "plan", "residual")


def _texts(value: Any) -> bool:
    return any(map(_texts, value)) if isinstance(value, list) else isinstance(value, str)


def _size(value: Size) -> Size:
    return value if isinstance(value, int) else size_text(value)


def _number(size: Size) -> Size:
    """A size without symbols as the number that it is."""
    return size if symbols_of(size) else value_of(size, {})
