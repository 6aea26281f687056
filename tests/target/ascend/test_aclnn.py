# SPDX-License-Identifier: Apache-2.0
"""Which functions of aclnn a product is, on which views: NumPy's strides compute what the reference does."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.target.ascend.aclnn import Operand, Product, convolution, products

Array = np.ndarray[Any, Any]


def read(buffer: Array, operand: Operand) -> Array:
    flat = buffer.reshape(-1)[operand.offset :]
    steps = [step * buffer.itemsize for step in operand.strides]
    return np.lib.stride_tricks.as_strided(flat, operand.shape, steps)


def run(calls: tuple[Product, ...], buffers: dict[str, Array]) -> None:
    """The documented meaning of the three functions."""
    for call in calls:
        views = [read(buffers[operand.role], operand) for operand in call.operands]
        if call.function == "Matmul":
            a, b, out = views
            assert 2 <= min(a.ndim, b.ndim) and max(a.ndim, b.ndim) <= 6
            out[...] = a @ b
        else:
            term, a, b, out = views
            rank = {"Addmm": 2, "Baddbmm": 3}[call.function]
            assert a.ndim == b.ndim == out.ndim == rank and 1 <= term.ndim <= rank
            out[...] = term + a @ b


CASES = {
    "contiguous": MatmulAttrs.contiguous((4, 5), (5, 6)),
    "transposed": MatmulAttrs.contiguous((5, 4), (6, 5), transpose_a=True, transpose_b=True),
    "batches broadcast": MatmulAttrs.contiguous((2, 3, 4, 5), (3, 5, 6)),
    "heads": MatmulAttrs(  # (2, 4, 3, 5): the heads of a joined projection
        batch=(2, 3),
        m=4,
        n=4,
        k=5,
        a=OperandLayout((60, 5, 15, 1)),
        b=OperandLayout((60, 5, 1, 15)),
        out=OperandLayout((48, 16, 4, 1)),
    ),
    "three batch dimensions": MatmulAttrs(
        batch=(2, 2, 3),
        m=2,
        n=3,
        k=2,
        a=OperandLayout((24, 0, 8, 4, 1), 1),
        b=OperandLayout((0, 18, 6, 3, 1)),
        out=OperandLayout((40, 20, 6, 3, 1), 2),
    ),
    "a row": MatmulAttrs.contiguous((1, 5), (5, 6)),
    "batch of one": MatmulAttrs.contiguous((1, 4, 5), (1, 5, 6)),
}


@pytest.mark.parametrize("term", ["", "bias", "residual"])
@pytest.mark.parametrize("name", CASES)
def test_products(name: str, term: str) -> None:
    case = CASES[name]
    extra = {"bias": {"bias": True}, "residual": {"residual": "before_activation"}}.get(term, {})
    product = MatmulAttrs(**_fields(case), **extra)
    rng = np.random.default_rng(1)
    buffers = {role: rng.standard_normal(300) for role in ("a", "b", "residual", "out")}
    buffers["bias"] = rng.standard_normal(product.n)
    added = {"bias": buffers["bias"]} if term == "bias" else {}
    added |= {"residual": buffers["residual"]} if term == "residual" else {}
    want = reference.matmul(product, buffers["a"], buffers["b"], **added, out=buffers["out"])
    calls = products(product)
    run(calls, buffers)
    np.testing.assert_allclose(buffers["out"], want, rtol=1e-12, atol=1e-12)
    if name == "three batch dimensions":
        assert len(calls) == (1 if not term else 4)


def _fields(product: MatmulAttrs) -> dict[str, Any]:
    return {name: getattr(product, name) for name in ("batch", "m", "n", "k", "a", "b", "out")}


def test_batches_that_lie_one_after_the_other_join() -> None:
    """(2, 3) matrices of contiguous tensors are a batch of 6: one aclnnBaddbmm."""
    (call,) = products(MatmulAttrs.contiguous((2, 3, 4, 5), (2, 3, 5, 6), bias=True))
    assert call.function == "Baddbmm"
    assert [operand.shape for operand in call.operands] == [(6,), (6, 4, 5), (6, 5, 6), (6, 4, 6)]


def test_strides_are_those_of_views() -> None:
    """No operand has a stride of 0: what repeats has the extent 1."""
    for product, term in itertools.product(CASES.values(), (False, True)):
        for call in products(MatmulAttrs(**_fields(product), bias=term)):
            for operand in call.operands:
                assert all(
                    step > 0 or size == 1 for size, step in zip(operand.shape, operand.strides, strict=True)
                )


def test_a_convolution() -> None:
    conv = Conv2dAttrs(
        input=(2, 4, 9, 8),
        weight=(6, 2, 3, 2),
        strides=(2, 1),
        padding=(1, 2, 1, 2),
        dilation=(1, 2),
        groups=2,
        bias=True,
    )
    call = convolution(conv)
    assert call.shapes == ((2, 4, 9, 8), (6, 2, 3, 2), (6,), conv.output)
    assert (call.stride, call.padding, call.dilation, call.groups) == ((2, 1), (1, 2), (1, 2), 2)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"alpha": 0.5}, "a factor"),
        ({"activation": "relu"}, "an activation"),
        ({"packed": True}, "packed for the CPU"),
        ({"bias": True, "residual": "before_activation"}, "a bias and a residual"),
    ],
)
def test_what_the_library_s_table_does_not_allow(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        products(MatmulAttrs(**_fields(CASES["contiguous"]), **more))
