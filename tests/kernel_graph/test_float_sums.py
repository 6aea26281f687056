# SPDX-License-Identifier: Apache-2.0
"""Sums of bytes that a library gives in float32: cut so that each is exact, and added as if in integers."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from uir_tvm.kernel_graph import build
from uir_tvm.kernel_graph.float_sums import parts_of
from uir_tvm.library.integer_matmul_attrs import EXACT

from .integer_sums import product


@pytest.mark.parametrize(("length", "parts"), [(1028, 1), (1029, 3), (1030, 2), (2056, 2), (2063, 3)])
def test_parts_are_exact_and_as_few_as_will_do(length: int, parts: int) -> None:
    """255 * 64 * 1028 is the last below 2^24. 1029 = 3 * 343 needs no zeros then; 2063 is prime."""
    assert 255 * 64 * 1028 <= EXACT < 255 * 64 * 1029
    assert parts_of(np.full((2, length), 64, np.int8), 255) == parts


@pytest.mark.parametrize("floats", [False, True])
def test_long_sums_are_those_of_integers(floats: bool) -> None:
    """Of three parts: rows that cancel, rows that float32 does not hold, and a bias of 31 bits."""
    rng = np.random.default_rng(5)
    weight = rng.integers(-128, 128, (1024, 6)).astype(np.int32)
    weight[:, 0], weight[:, 1] = 127, -128
    weight[::2, 2], weight[1::2, 2] = 127, -127
    bias = np.array([2**30 + 1, -(2**30) - 3, 1, 0, 2**26 + 5, -7], np.int32)
    module = product(weight, bias, floats)
    (node,) = [
        each for each in build(module, "uir-bang").nodes if getattr(each, "kind", "") == "integer_matmul"
    ]
    assert node.attrs.parts > 1 and node.outputs[0].dtype == "float32"
    x = rng.integers(0, 256, (3, 1024)).astype(np.uint8)
    x[0] = 255
    wanted = (x.astype(np.int64) - 7) @ weight.astype(np.int64) + bias
    got = np.asarray(uir_tvm.compile(module, "uir-bang")(x))
    np.testing.assert_array_equal(got, wanted.astype(got.dtype))
