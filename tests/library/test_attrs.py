# SPDX-License-Identifier: Apache-2.0
"""Attributes of library operators: round trip, derived layouts, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import tvm_ffi
from uir_tvm.errors import ShapeError
from uir_tvm.library import cpu
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout, contiguous_strides


def test_json_round_trip_of_matmul() -> None:
    """What to_json writes from_json reads, and equal attributes give equal text (the plans' key)."""
    view = OperandLayout((6, 1), 3)
    attrs = MatmulAttrs(
        m=2,
        n=3,
        k=4,
        a=view,
        b=OperandLayout((1, 4)),
        out=OperandLayout((3, 1)),
        alpha=0.5,
        activation="silu",
    )
    assert MatmulAttrs.from_json(attrs.to_json()) == attrs
    assert MatmulAttrs.from_json(attrs.to_json()).to_json() == attrs.to_json()


def test_json_round_trip_of_conv2d() -> None:
    attrs = Conv2dAttrs(input=(1, 4, 9, 9), weight=(6, 2, 3, 3), groups=2, padding=(1, 0, 2, 1), bias=True)
    assert Conv2dAttrs.from_json(attrs.to_json()) == attrs


def test_contiguous_strides_are_numpys() -> None:
    """The same numbers as NumPy's strides divided by the item size."""
    for shape in [(3,), (2, 5), (4, 1, 7, 2)]:
        array = np.zeros(shape, np.float32)
        assert contiguous_strides(shape) == tuple(s // 4 for s in array.strides)


def test_contiguous_matmul_broadcasts_the_batch() -> None:
    """A batch dimension that an operand lacks, or has once, gets stride 0."""
    attrs = MatmulAttrs.contiguous((2, 3, 4, 5), (3, 5, 6))
    assert attrs.batch == (2, 3)
    assert attrs.b.strides == (0, 30, 6, 1)
    assert MatmulAttrs.contiguous((1, 3, 4, 5), (2, 1, 5, 6)).a.strides == (0, 20, 5, 1)


def test_transposed_operands_swap_strides() -> None:
    attrs = MatmulAttrs.contiguous((5, 4), (6, 5), transpose_a=True, transpose_b=True)
    assert (attrs.m, attrs.n, attrs.k) == (4, 6, 5)
    assert attrs.a.strides == (1, 4)
    assert attrs.b.strides == (1, 5)


@pytest.mark.parametrize(
    ("a", "b", "out"), [((4, 5), (6, 7), None), ((2, 4, 5), (3, 5, 6), None), ((4, 5), (5, 6), (4, 7))]
)
def test_shapes_that_do_not_fit_are_refused(
    a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match="does not fit"):
        MatmulAttrs.contiguous(a, b, out)


@pytest.mark.parametrize(
    "shapes", [((-1, 5), (5, 6)), ((4, -1), (-1, 6)), ((4, 5), (5, -1)), ((-1, 4, 5), (-1, 5, 6))]
)
def test_negative_sizes_are_refused(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(ShapeError, match="at least 0 in every dimension"):
        MatmulAttrs.contiguous(*shapes)


def test_unknown_activation_is_refused_with_the_list() -> None:
    with pytest.raises(ShapeError, match="gelu_erf"):
        MatmulAttrs.contiguous((4, 5), (5, 6), activation="mish")


@pytest.mark.parametrize(
    "text",
    ["clip", "clip()", "clip(1)", "clip(0,6", "clip(0,six)", "clip(0,6,7)", "relu(1)", "leaky_relu(1,2)"],
)
def test_activations_with_other_parameters_are_refused(text: str) -> None:
    """By the attributes, and by what reads their text."""
    with pytest.raises(ShapeError, match=r"clip\(number,number\)"):
        MatmulAttrs.contiguous((4, 5), (5, 6), activation=text)
    known = MatmulAttrs.contiguous((4, 5), (5, 6), activation="clip(0,6)").to_json()
    cpu.locate()
    describe = tvm_ffi.get_global_func("uir.library.cpu.describe")
    with pytest.raises(ValueError, match="need: "):
        describe(known.replace("clip(0,6)", text), "float32")


def test_four_batch_dimensions_are_refused() -> None:
    with pytest.raises(ShapeError, match="merge dimensions"):
        MatmulAttrs.contiguous((2, 2, 2, 2, 4, 5), (5, 6))


def test_conv2d_output_shape() -> None:
    """Formula of PyTorch's Conv2d, with unequal padding."""
    attrs = Conv2dAttrs(
        input=(2, 3, 20, 21), weight=(4, 3, 3, 5), strides=(2, 1), padding=(1, 2, 0, 1), dilation=(2, 1)
    )
    assert attrs.output == (2, 4, (20 + 1 - 4 - 1) // 2 + 1, (21 + 3 - 4 - 1) // 1 + 1)


@pytest.mark.parametrize(
    "change",
    [
        {"weight": (4, 2, 3, 3)},
        {"groups": 2},
        {"weight": (4, 3, 9, 9)},
        {"input": (1, 3, 0, 8)},
        {"padding": (-1, 0, 0, 0)},
    ],
)
def test_conv2d_that_does_not_fit_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ShapeError):
        Conv2dAttrs(**{"input": (1, 3, 8, 8), "weight": (4, 3, 3, 3), **change})  # type: ignore[arg-type]
