# SPDX-License-Identifier: Apache-2.0
"""What a library operator computes, as frozen attributes that travel as one JSON string."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

import attrs

from ..errors import ShapeError
from ..igraph.space import USUAL
from ..sizes.open_arithmetic import broadcast_shapes, is_many, is_one, structure
from ..sizes.open_size import AnySize
from .open_attrs import OpenAttrs, OperandLayout, contiguous_strides, not_below, sizes
from .reference import ACTIVATIONS, PARAMETRIC, activation

__all__ = [
    "CONVOLUTION_PLANS",
    "EPILOGUES",
    "LAYOUTS",
    "PLANS",
    "RESIDUALS",
    "Conv2dAttrs",
    "MatmulAttrs",
    "OperandLayout",
    "contiguous_strides",
]

#: Where a residual is added to the result.
RESIDUALS = ("none", "before_activation", "after_activation")

#: How an operator is computed: as the library finds best, or in plain C++.
PLANS = ("best", "plain")
#: A convolution also by products of pixels and weights alone, by Winograd's way wherever there is one, or by
#: tiles of our own wherever there are any.
CONVOLUTION_PLANS = (*PLANS, "direct", "winograd", "tiles")

#: How images lie in memory, contiguous: channel by channel, or the channels of a pixel side by side.
LAYOUTS = ("NCHW", "NHWC")

#: What the library fuses after a product: activations by name, and the other terms of the epilogue.
EPILOGUES: dict[str, tuple[str, ...]] = {
    "activation": (*ACTIVATIONS, *PARAMETRIC),
    "residual": RESIDUALS,
    "bias": ("last axis of a matmul", "channel axis of a conv2d"),
}


_SIZE = not_below(0, "correct the shapes")
_POSITIVE = not_below(1, "leave an operator without elements out of the graph")
#: How an operator runs, and how its images lie: not in the text unless it was chosen.
_SETTLED = {"settled": True}


def _one_of(choices: Sequence[str]) -> Any:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: str) -> None:
        if value not in choices:
            raise ShapeError(
                f'{type(instance).__name__}: {attribute.name} is "{value}".',
                limit=f"the library knows {', '.join(choices)}",
                remedy="compute it in a kernel of its own after the library operator",
            )

    return check


def _known_activation(instance: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    """A name of `ACTIVATIONS`, or one of `PARAMETRIC` with its numbers."""
    if activation(value) is None:
        known = [f"{name}({','.join(['number'] * count)})" for name, (count, _) in PARAMETRIC.items()]
        raise ShapeError(
            f'{type(instance).__name__}: {attribute.name} is "{value}".',
            limit=f"the library knows {', '.join([*ACTIVATIONS, *known])}",
            remedy="compute it in a kernel of its own after the library operator",
        )


@attrs.frozen(kw_only=True)
class MatmulAttrs(OpenAttrs):
    """out[batch, m, n] = act(alpha * sum_k a[batch, m, k] * b[batch, k, n] + bias[n]), with a residual.

    The tensors passed are whole contiguous buffers; `a`, `b` and `out` say where the operands lie in them, so
    that transposes, reshapes and slices around a product cost nothing. A residual lies as `out` does. Sizes,
    strides and offsets are numbers or open sizes (`open_attrs`).

    Parameters
    ----------
    batch : tuple of int
        At most three dimensions; empty for one product.
    m, n, k : int
        A product without elements does nothing, one with k = 0 is a product of zeros.
    a, b, out : OperandLayout
        `len(batch) + 2` strides each. With `packed`, `b` describes the tensor that `pack_weight` gets.
    alpha : float
    bias : bool
        Of n elements, added after scaling by alpha.
    residual : str
        "none", "before_activation" or "after_activation".
    activation : str
        A key of `ACTIVATIONS`, or of `PARAMETRIC` with its numbers: ``clip(0,6)``.
    packed : bool
        b is the result of `pack_weight`.
    packed_for : int
        The rows for which `pack_weight` chose the layout of b; 0: for m. One packed weight so serves every m.
    threads : int
        Threads of the pool at most; 0: as many as pay by the library's estimate.
    plan : str
        ``best``, or ``plain``: plain C++ although there is a library.

    Raises
    ------
    ShapeError
        A negative dimension, a number of strides that does not fit, an unknown name.
    """

    batch: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, default=(), validator=_SIZE)
    m: int = attrs.field(eq=structure, validator=_SIZE)
    n: int = attrs.field(eq=structure, validator=_SIZE)
    k: int = attrs.field(eq=structure, validator=_SIZE)
    a: OperandLayout
    b: OperandLayout
    out: OperandLayout
    alpha: float = attrs.field(default=1.0, converter=float)
    bias: bool = False
    residual: str = attrs.field(default="none", validator=_one_of(RESIDUALS))
    activation: str = attrs.field(default="none", validator=_known_activation)
    packed: bool = False
    packed_for: int = attrs.field(default=0, validator=attrs.validators.ge(0), metadata=_SETTLED)
    threads: int = attrs.field(default=0, validator=attrs.validators.ge(0), metadata=_SETTLED)
    plan: str = attrs.field(default="best", validator=_one_of(PLANS), metadata=_SETTLED)

    def __attrs_post_init__(self) -> None:
        rank = len(self.batch) + 2
        if rank > 5:
            raise ShapeError(
                f"MatmulAttrs: {len(self.batch)} batch dimensions.",
                limit="3",
                remedy="merge dimensions that follow each other in memory",
            )
        for name in ("a", "b", "out"):
            view: OperandLayout = getattr(self, name)
            if len(view.strides) != rank or any(number < 0 for number in (view.offset, *view.strides)):
                raise ShapeError(
                    f"MatmulAttrs: {name} is {view}.",
                    need=f"{rank} strides and an offset, none negative",
                    remedy="give one stride for each batch dimension, then the two of the matrix",
                )

    @classmethod
    def contiguous(
        cls,
        a: Sequence[AnySize],
        b: Sequence[AnySize],
        out: Sequence[AnySize] | None = None,
        *,
        transpose_a: bool = False,
        transpose_b: bool = False,
        **epilogue: Any,
    ) -> MatmulAttrs:
        """Attributes of a product of contiguous tensors, with NumPy's broadcasting of batch dimensions.

        Parameters
        ----------
        a, b : sequence of int
            Shapes [..., m, k] and [..., k, n] (the last two exchanged with `transpose_a`, `transpose_b`).
        out : sequence of int, optional
            [..., m, n]; derived where left out.
        **epilogue
            alpha, bias, residual, activation, packed.

        Raises
        ------
        ShapeError
            Shapes that do not fit each other.
        """
        m, k = (a[-1], a[-2]) if transpose_a else (a[-2], a[-1])
        k2, n = (b[-1], b[-2]) if transpose_b else (b[-2], b[-1])
        try:
            batch = broadcast_shapes(a[:-2], b[:-2])
            fits = k == k2 and (out is None or tuple(out) == (*batch, m, n))
        except ValueError:
            fits = False
        if not fits:
            raise ShapeError(
                f"A matmul of {tuple(a)} and {tuple(b)}"
                + (f" into {tuple(out)}" if out else "")
                + " does not fit.",
                need=f"equal inner dimensions (here {k} and {k2}) and batch dimensions that broadcast",
                remedy="correct the shapes",
            )

        def view(shape: Sequence[AnySize], transpose: bool) -> OperandLayout:
            strides = list(contiguous_strides(shape))
            if transpose:
                strides[-1], strides[-2] = strides[-2], strides[-1]
            lead = [s if is_many(size) else 0 for s, size in zip(strides[:-2], shape[:-2], strict=True)]
            return OperandLayout([0] * (len(batch) - len(lead)) + lead + strides[-2:])

        return cls(
            batch=batch,
            m=m,
            n=n,
            k=k,
            a=view(a, transpose_a),
            b=view(b, transpose_b),
            out=OperandLayout(contiguous_strides((*batch, m, n))),
            **epilogue,
        )

    @property
    def packable(self) -> bool:
        """Whether b is one matrix, as `pack_weight` needs."""
        return all(
            stride == 0 or is_one(size) for size, stride in zip(self.batch, self.b.strides, strict=False)
        )

    def with_packed_weight(self) -> MatmulAttrs:
        """With `packed`; where sizes are open, for a usual number of rows."""
        return attrs.evolve(self, packed=True, packed_for=USUAL if self.is_open else 0)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The attributes that `to_json` wrote."""
        fields = json.loads(text)
        for name in ("a", "b", "out"):
            offset, strides = fields[name]
            fields[name] = OperandLayout(strides, offset)
        return cls(**fields)


@attrs.frozen(kw_only=True)
class Conv2dAttrs(OpenAttrs):
    """Convolution of images with OIHW weights, all contiguous; epilogue as `MatmulAttrs`, bias of o elements.

    n, h and w of the input are numbers or open sizes (`open_attrs`).

    Parameters
    ----------
    input, weight : tuple of int
        (n, c, h, w), of which n may be 0, and (o, c / groups, kh, kw).
    strides, dilation : tuple of int
        Of rows, of columns.
    padding : tuple of int
        Zeros above, left, below, right.
    groups : int
    alpha, bias, residual, activation, packed, threads
        As in `MatmulAttrs`.
    plan : str
        As there; ``direct`` never takes Winograd's way, ``winograd`` and ``tiles`` (of our own) are taken
        wherever there are any.
    input_layout, output_layout : str
        ``NCHW`` or ``NHWC``; a residual lies as the output does. Sizes are given as (n, c, h, w) in both.

    Raises
    ------
    ShapeError
        A dimension below 1, channels that do not fit the groups, an unknown name, an empty result.
    """

    input: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, validator=_SIZE)
    weight: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, validator=_POSITIVE)
    strides: tuple[int, ...] = attrs.field(converter=sizes, eq=structure, default=(1, 1), validator=_POSITIVE)
    padding: tuple[int, ...] = attrs.field(
        converter=sizes, eq=structure, default=(0, 0, 0, 0), validator=_SIZE
    )
    dilation: tuple[int, ...] = attrs.field(
        converter=sizes, eq=structure, default=(1, 1), validator=_POSITIVE
    )
    groups: int = attrs.field(default=1, validator=_POSITIVE)
    alpha: float = attrs.field(default=1.0, converter=float)
    bias: bool = False
    residual: str = attrs.field(default="none", validator=_one_of(RESIDUALS))
    activation: str = attrs.field(default="none", validator=_known_activation)
    packed: bool = False
    threads: int = attrs.field(default=0, validator=attrs.validators.ge(0), metadata=_SETTLED)
    plan: str = attrs.field(default="best", validator=_one_of(CONVOLUTION_PLANS), metadata=_SETTLED)
    input_layout: str = attrs.field(default="NCHW", validator=_one_of(LAYOUTS), metadata=_SETTLED)
    output_layout: str = attrs.field(default="NCHW", validator=_one_of(LAYOUTS), metadata=_SETTLED)

    def __attrs_post_init__(self) -> None:
        lengths = (
            len(self.input),
            len(self.weight),
            len(self.strides),
            len(self.padding),
            len(self.dilation),
        )
        if lengths != (4, 4, 2, 4, 2):
            raise ShapeError(
                f"Conv2dAttrs: {self}.",
                need="input and weight of 4 numbers, strides and dilation of 2, padding of 4",
                remedy="give padding as (above, left, below, right)",
            )
        o, i = self.weight[:2]
        if i * self.groups != self.input[1] or o % self.groups:
            raise ShapeError(
                f"A conv2d of {self.input} with weights {self.weight} in {self.groups} groups does not fit.",
                need=f"weights of {self.input[1]} / groups input channels, output channels in whole groups",
                remedy="correct the shapes or the groups",
            )
        if any(size < 1 for size in self.input[1:]) or any(self._room(d) < 0 for d in range(2)):
            raise ShapeError(
                f"A conv2d of {self.input} with weights {self.weight} has an empty result.",
                need="a window no larger than the padded input",
                remedy="add padding or leave the operator out",
            )

    def _room(self, d: int) -> AnySize:
        """How far the window moves along rows or columns."""
        padded = self.input[2 + d] + self.padding[d] + self.padding[2 + d]
        return padded - (self.weight[2 + d] - 1) * self.dilation[d] - 1

    @property
    def output(self) -> tuple[int, int, int, int]:
        """(n, o, oh, ow)."""
        rows, columns = (self._room(d) // self.strides[d] + 1 for d in range(2))
        return (self.input[0], self.weight[0], rows, columns)

    def with_packed_weight(self) -> Conv2dAttrs:
        """With `packed`."""
        return attrs.evolve(self, packed=True)

    @classmethod
    def from_json(cls, text: str) -> Conv2dAttrs:
        """The attributes that `to_json` wrote."""
        return cls(**json.loads(text))
