# SPDX-License-Identifier: Apache-2.0
"""Tensors and arrays on one memory where NumPy knows the dtype, never to be written; and copies."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest
import tvm
from uir_tvm.tensor_view import AT_ONCE, PLAIN, bytes_of, lent, same_bytes, tensor_of, view_of


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


@pytest.mark.parametrize("dtype", [*sorted(PLAIN), "bfloat16"])
def test_a_copy_has_the_elements_whatever_the_strides(dtype: str) -> None:
    numbers = (np.arange(24).reshape(4, 6) % 2).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    for array in (numbers.T, numbers[::2, 1:4], np.broadcast_to(numbers[0], (3, 6)), numbers[1, 2]):
        made = tensor_of(array)
        assert str(made.dtype) == dtype and tuple(made.shape) == array.shape
        np.testing.assert_array_equal(view_of(made).astype("float64"), array.astype("float64"))
    numbers[:] = 1
    assert view_of(made) == 0


def test_a_copy_has_another_dtype_as_astype_makes_it() -> None:
    numbers = np.array([[0.5, -2.75], [3.999, 1e-3]])
    for dtype in ("int32", "float16", "bool", "bfloat16"):
        wanted = numbers.T.astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
        np.testing.assert_array_equal(view_of(tensor_of(numbers.T, dtype)), wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "bfloat16"])
def test_an_array_that_cannot_be_written_is_lent(dtype: str) -> None:
    array = np.ones((300, 40), np.dtype(getattr(ml_dtypes, dtype, dtype)))
    array.flags.writeable = False
    tensor = lent(array)
    seen = view_of(tensor)
    assert (seen.ctypes.data == array.ctypes.data) == (dtype in PLAIN)
    wanted = np.arange(12000, dtype="float32").reshape(300, 40).T
    kept = lent(wanted)  # in memory that nothing else holds
    gc.collect()
    np.testing.assert_array_equal(view_of(kept), wanted)
    np.testing.assert_array_equal(seen, array)


def test_tensors_are_compared_byte_by_byte() -> None:
    array = np.zeros(2 * AT_ONCE // 4 + 3, "float32")
    one, other = tvm.runtime.tensor(array), tvm.runtime.tensor(array)
    assert same_bytes(one, other) and same_bytes(one, one)
    array[-1] = -0.0
    assert not same_bytes(one, tvm.runtime.tensor(array))
    assert not same_bytes(one, tvm.runtime.tensor(array[1:]))
    narrow = tvm.runtime.tensor(np.ones(3, ml_dtypes.bfloat16))
    assert bytes_of(narrow).tolist() == [0x80, 0x3F] * 3
