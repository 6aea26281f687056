# SPDX-License-Identifier: Apache-2.0
"""Views of tensors: the same memory where NumPy knows the dtype, never to be written."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
import tvm
from uir_tvm.tensor_view import PLAIN, view_of


@pytest.mark.parametrize("dtype", [*sorted(PLAIN), "bfloat16"])
@pytest.mark.parametrize("shape", [(), (3, 2), (0, 4)])
def test_a_view_has_the_elements(dtype: str, shape: tuple[int, ...]) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2
    array = numbers.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    seen = view_of(tvm.runtime.tensor(array))
    gc.collect()  # the view holds the memory, whoever made the tensor
    assert seen.shape == shape and seen.dtype == array.dtype
    np.testing.assert_array_equal(seen.astype("float64"), array.astype("float64"))


def test_a_view_shares_memory_and_cannot_be_written() -> None:
    tensor = tvm.runtime.tensor(np.zeros(8, "float32"))
    seen = view_of(tensor)
    tensor.copyfrom(np.ones(8, "float32"))
    assert seen.sum() == 8
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 2
