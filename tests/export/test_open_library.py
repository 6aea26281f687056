# SPDX-License-Identifier: Apache-2.0
"""Library calls whose attributes sizes decide: at numbers, their views are those of the library itself."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from uir_tvm.export.open_library import (
    SizedProduct,
    convolution_shapes,
    is_open,
    plus,
    times,
)
from uir_tvm.library.attrs import Conv2dAttrs
from uir_tvm.library.sized import in_numbers
from uir_tvm.sizes.symbolic_shapes import value_of

SIZES = {"b": 3, "n": 5, "h": 17}
#: Heads of attention, (b, n, 4, 8) read as (b, 4, n, 8); a batch that one operand repeats; a slice.
PRODUCTS: list[dict[str, Any]] = [
    {
        "batch": ["b", 4],
        "m": "n",
        "n": "n",
        "k": 8,
        "a": [0, ["32*n", 8, 32, 1]],
        "b": [0, ["32*n", 8, 1, 32]],
        "out": [0, ["4*n*n", "n*n", "n", 1]],
    },
    {
        "batch": ["b"],
        "m": "n",
        "n": 6,
        "k": 8,
        "a": ["8*n", ["16*n", 8, 1]],
        "b": [0, [0, 6, 1]],
        "out": [0, ["6*n", 6, 1]],
    },
    {"batch": [], "m": "b*n", "n": 6, "k": 8, "a": [0, [8, 1]], "b": [0, [6, 1]], "out": [0, [6, 1]]},
]
REST = {"alpha": 1.0, "bias": False, "residual": "none", "activation": "none", "packed": False}


def places(shape: Sequence[Any], strides: Sequence[Any], offset: Any) -> list[int]:
    """Where the elements of a view lie, in the view's order; what has one index repeats nothing."""
    extents, steps = ([value_of(size, SIZES) for size in sizes] for sizes in (shape, strides))
    index = np.indices(extents).reshape(len(extents), -1)
    return sorted({int(at) for at in np.tensordot(steps, index, 1) + value_of(offset, SIZES)})


@pytest.mark.parametrize("fields", PRODUCTS, ids=["heads", "repeated", "matrix"])
def test_views_are_those_of_the_library(fields: dict[str, Any]) -> None:
    text = json.dumps({**fields, **REST})
    assert is_open(text) and not is_open(in_numbers("matmul", text, SIZES))
    product = SizedProduct.of(text)
    assert product.roles == ["a", "b", "out"] and product.term == ""
    rows = tvm_ffi.get_global_func("uir.library.bang.product")(in_numbers("matmul", text, SIZES))
    for role, row in zip(product.roles, rows, strict=True):
        view = product.view(role, product.batch)
        wanted = places(row["shape"], row["strides"], row["offset"])
        assert places(view.shape, view.strides, view.offset) == wanted, (role, view)


def test_terms_lie_as_the_library_has_them() -> None:
    """A bias has a number for each column, a residual lies as the result does, moved with it."""
    biased = SizedProduct.of(json.dumps({**PRODUCTS[2], **REST, "bias": True}))
    bias = biased.view("bias", biased.batch)
    assert biased.roles == ["a", "b", "bias", "out"] and (bias.shape, bias.strides) == ((6,), (1,))
    added = SizedProduct.of(json.dumps({**PRODUCTS[0], **REST, "residual": "before_activation"}))
    shift = (0, 0, times("n", "n"))
    residual, out = (added.view(role, added.batch[1:], shift) for role in ("residual", "out"))
    assert added.term == "residual" and residual.offset == out.offset == "n * n"
    assert (residual.shape, residual.strides) == (out.shape, out.strides) == ((4, "n", "n"), ("n*n", "n", 1))


@pytest.mark.parametrize(
    ("strides", "padding", "dilation"),
    [((2, 2), (1, 1, 1, 1), (1, 1)), ((1, 3), (0, 2, 0, 2), (2, 1))],
)
def test_a_convolution_s_result(strides: Any, padding: Any, dilation: Any) -> None:
    fields = {
        "input": ["b", 3, "h", "h + 4"],
        "weight": [8, 3, 3, 3],
        "strides": strides,
        "padding": padding,
        "dilation": dilation,
        "groups": 1,
        **{**REST, "bias": True},
    }
    text = json.dumps(fields)
    shapes = convolution_shapes(text)
    wanted = Conv2dAttrs.from_json(in_numbers("matmul", text, SIZES))
    assert [[value_of(size, SIZES) for size in shape] for shape in shapes] == [
        list(wanted.input),
        list(wanted.weight),
        [8],
        list(wanted.output),
    ]


def test_sizes_add_and_multiply() -> None:
    assert (times(3, 4), times(1, "n"), times("n", 1), times("n + 1", 2)) == (12, "n", "n", "(n + 1) * 2")
    assert (plus(3, 4), plus(0, "n"), plus("n", 0), plus("n", "b")) == (7, "n", "n", "n + b")
