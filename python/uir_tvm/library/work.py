# SPDX-License-Identifier: Apache-2.0
"""What a library operator computes and moves at least, by its attributes alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import attrs

from ..sizes.symbolic_shapes import Sizes
from .attention_attrs import AttentionAttrs
from .attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from .chain_attrs import Conv2dChainAttrs
from .integer_attrs import IntegerAttrs
from .integer_matmul_attrs import IntegerMatmulAttrs
from .quantized_attrs import QuantizedMatmulAttrs
from .recurrence import GATES, RecurrenceAttrs
from .sized import in_numbers
from .sort_attrs import SortAttrs

#: Multiplications of Winograd's way, F(2x2, 3x3), and of sums of products, for 2x2 pixels of a result.
WINOGRAD, DIRECT = 16, 36


@attrs.frozen
class Work:
    """One call.

    Attributes
    ----------
    sizes : str
        What people call it by: ``512x1024x3072`` (m, k, n after the batch), ``1x3x8x8 by 4x3x3x3``.
    operations : int
        Multiplications and additions of the product; its epilogue does not count. Of a sort the elements.
    elements : int
        Of all operands read once, and of the result; of ``integer_matmul`` the bytes.
    is_winograd : bool
        Whether it is a convolution that Winograd's way may compute, with fewer operations.
    """

    sizes: str
    operations: int
    elements: int
    is_winograd: bool = False

    @property
    def least_operations(self) -> int:
        """As many as are computed by the way that takes the fewest, without its sums of pixels."""
        return self.operations * WINOGRAD // DIRECT if self.is_winograd else self.operations


def _seen(view: OperandLayout, extents: Sequence[int]) -> int:
    """Elements that a view shows; what repeats counts once."""
    return math.prod(n for n, stride in zip(extents, view.strides, strict=True) if stride)


def _matmul(text: str) -> Work:
    return _product(MatmulAttrs.from_json(text))


def _product(it: MatmulAttrs) -> Work:
    out = math.prod((*it.batch, it.m, it.n))
    elements = _seen(it.a, (*it.batch, it.m, it.k)) + _seen(it.b, (*it.batch, it.k, it.n)) + out
    elements += it.n * it.bias + out * (it.residual != "none")
    sizes = "x".join(map(str, (*it.batch, it.m, it.k, it.n)))
    return Work(sizes, 2 * out * it.k, elements)


def _quantized(text: str) -> Work:
    it = QuantizedMatmulAttrs.from_json(text)
    work = _product(it)
    weight = it.packing.nbytes(it.n, it.k) // 4 - it.n * it.k
    return attrs.evolve(work, elements=work.elements + weight)


def _conv2d(text: str) -> Work:
    return _convolution(Conv2dAttrs.from_json(text))


def _convolution(it: Conv2dAttrs) -> Work:
    o, i, kh, kw = it.weight
    out = math.prod(it.output)
    elements = math.prod(it.input) + math.prod(it.weight) + out + o * it.bias + out * (it.residual != "none")
    sizes = f"{'x'.join(map(str, it.input))} by {'x'.join(map(str, it.weight))}"
    plain = it.strides == it.dilation == (1, 1) and it.groups == 1
    is_winograd = plain and (kh, kw) == (3, 3) and it.plan != "direct"
    return Work(sizes, 2 * out * i * kh * kw, elements, is_winograd)


def _chain(text: str) -> Work:
    parts = Conv2dChainAttrs.from_json(text).parts
    works = [_convolution(part) for part in parts]
    between = 2 * sum(math.prod(part.output) for part in parts[:-1])  # neither written nor read
    shapes = (parts[0].input, *(part.weight for part in parts))
    sizes = " by ".join("x".join(map(str, shape)) for shape in shapes)
    return Work(sizes, sum(work.operations for work in works), sum(work.elements for work in works) - between)


def _recurrence(text: str) -> Work:
    it = RecurrenceAttrs.from_json(text)
    states, wide = it.steps * it.batch * it.hidden, GATES[it.cell] * it.hidden
    elements = states * (GATES[it.cell] + 1) + it.hidden * wide
    return Work(f"{it.cell} {it.steps}x{it.batch}x{it.hidden}", 2 * states * wide, elements)


def _attention(text: str) -> Work:
    it = AttentionAttrs.from_json(text)
    rows = math.prod((*it.batch, it.m))
    elements = _seen(it.query, (*it.batch, it.m, it.d)) + rows * it.e
    elements += _seen(it.key, (*it.batch, it.n, it.d)) + _seen(it.value, (*it.batch, it.n, it.e))
    elements += _seen(it.mask, (*it.batch, it.m, it.n)) if it.masked else 0
    return Work("x".join(map(str, (*it.batch, it.m, it.n, it.d))), 2 * rows * it.n * (it.d + it.e), elements)


def _integers(text: str) -> Work:
    it = IntegerAttrs.from_json(text)
    out, window = math.prod(it.output), it.image[3] * it.weight[1] * it.weight[2]
    elements = (math.prod(it.image) + it.weight[0] * window * (1 + it.wide)) // 4 + out
    sizes = f"{'x'.join(map(str, it.image))} by {'x'.join(map(str, it.weight))}"
    return Work(sizes, 2 * out * window, elements)


def _integer_matmul(text: str) -> Work:
    it = IntegerMatmulAttrs.from_json(text)
    elements = (it.m + it.n) * it.k + 4 * it.m * it.n  # the result's have four of the operands' bytes
    sizes = "x".join(map(str, ([it.parts] if it.parts > 1 else []) + [it.m, it.k, it.n]))
    return Work(sizes, 2 * it.parts * it.m * it.n * it.k, it.parts * elements)


def _sort(text: str) -> Work:
    it = SortAttrs.from_json(text)
    rows = it.outer * it.inner
    elements = rows * (it.length + it.count * (it.values + it.indices))
    return Work(f"{it.count} of {it.outer}x{it.length}x{it.inner}", rows * it.length, elements)


#: Operator -> what it does, of the text of its attributes.
WORK: Mapping[str, Callable[[str], Work]] = {
    "matmul": _matmul,
    "quantized_matmul": _quantized,
    "conv2d": _conv2d,
    "conv2d_chain": _chain,
    "integer_product": _integers,
    "integer_matmul": _integer_matmul,
    "recurrence": _recurrence,
    "attention": _attention,
    "sorted": _sort,
}


def work_of(operator: str, attributes: str, sizes: Sizes | None = None) -> Work:
    """The work of one call.

    Parameters
    ----------
    operator : str
        A key of `WORK`.
    attributes : str
        As `MatmulAttrs.to_json` and `Conv2dAttrs.to_json` write them.
    sizes : mapping of str to int, optional
        The numbers of the sizes that the attributes leave open.
    """
    return WORK[operator](attributes if sizes is None else in_numbers(operator, attributes, sizes))
