# SPDX-License-Identifier: Apache-2.0
"""The NumPy reference itself, against sums written out and known values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout

#: Known values at x = 1 (Abramowitz and Stegun, tables of erf, tanh and exp).
AT_ONE = {
    "none": 1.0,
    "relu": 1.0,
    "gelu_erf": 0.8413447460685429,
    "gelu_tanh": 0.8411919906082768,
    "silu": 1 / (1 + math.exp(-1)),
    "tanh": 0.7615941559557649,
    "sigmoid": 1 / (1 + math.exp(-1)),
}


@pytest.mark.parametrize("name", sorted(reference.ACTIVATIONS))
def test_activation_at_one(name: str) -> None:
    assert reference.ACTIVATIONS[name](np.array([1.0]))[0] == pytest.approx(AT_ONE[name], rel=1e-12)


def test_sigmoid_has_no_overflow() -> None:
    with np.errstate(all="raise", under="ignore"):
        assert reference.ACTIVATIONS["sigmoid"](np.array([-1e4, 1e4])).tolist() == [0.0, 1.0]


def test_matmul_of_views() -> None:
    """Offset and strides address the buffers; what the output view leaves out stays."""
    a, b = np.arange(12.0), np.arange(10.0)
    attrs = MatmulAttrs(
        m=2,
        n=1,
        k=2,
        a=OperandLayout((4, 2), 1),
        b=OperandLayout((3, 1), 2),
        out=OperandLayout((2, 1), 1),
        alpha=2.0,
    )
    got = reference.matmul(attrs, a, b, out=np.full(5, -1.0))
    expected = [-1.0, 2 * (1 * 2 + 3 * 5), -1.0, 2 * (5 * 2 + 7 * 5), -1.0]
    assert got.tolist() == expected


def test_conv2d_against_written_out_sums() -> None:
    """Every output element of a grouped, dilated, strided, unevenly padded convolution."""
    attrs = Conv2dAttrs(
        input=(1, 4, 6, 5),
        weight=(2, 2, 2, 3),
        groups=2,
        strides=(2, 1),
        dilation=(1, 2),
        padding=(1, 0, 0, 2),
    )
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((1, 4, 6, 5)), rng.standard_normal((2, 2, 2, 3))
    got = reference.conv2d(attrs, x, w)
    for o, y, z in np.ndindex(got.shape[1:]):
        total = 0.0
        for c, i, j in np.ndindex(2, 2, 3):
            row, column = y * 2 - 1 + i, z - 0 + j * 2
            if 0 <= row < 6 and 0 <= column < 5:
                total += x[0, o * 2 + c, row, column] * w[o, c, i, j]
        assert got[0, o, y, z] == pytest.approx(total, abs=1e-12)
