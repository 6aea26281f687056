# SPDX-License-Identifier: Apache-2.0
"""Tensors of TVM and NumPy's arrays: as few copies as can be, of which TVM's own functions make several."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import ml_dtypes
import numpy as np
import tvm
import tvm_ffi

#: dtypes that NumPy takes through DLPack; others by way of a copy.
PLAIN = frozenset(
    ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
    + ["float16", "float32", "float64"]
)

#: Bytes that are compared at once: the caches hold them.
AT_ONCE = 1 << 18


def view_of(tensor: tvm.runtime.Tensor) -> np.ndarray:
    """The elements of a tensor in the host's memory, to be read: an array that cannot be written."""
    if str(tensor.dtype) not in PLAIN or tensor.device.type != "cpu":
        return tensor.numpy()
    array = np.from_dlpack(tensor)
    array.flags.writeable = False
    return array


def tensor_of(array: np.ndarray, dtype: str | None = None) -> tvm.runtime.Tensor:
    """A tensor of TVM in memory of its own with the elements of an array: one copy, whatever its strides.

    Parameters
    ----------
    array : numpy.ndarray
    dtype : str, optional
        What its elements become, as ``astype`` makes it; default: what they are.
    """
    name = str(array.dtype) if dtype is None else dtype
    if name in PLAIN:
        made = tvm.runtime.empty(array.shape, name)
        elements = np.from_dlpack(made)
        if elements.flags.writeable:  # not by NumPy 1
            np.copyto(elements, array, casting="unsafe")
            return made
    dense = np.ascontiguousarray(array, np.dtype(getattr(ml_dtypes, name, name)))
    return tvm.runtime.tensor(dense.reshape(array.shape))  # what has no dimension got one


def lent(array: np.ndarray) -> tvm_ffi.Tensor:
    """A tensor on the memory of an array, for functions that only read it.

    NumPy lends by itself no array that cannot be written. One of a dtype beside `PLAIN` is copied.
    """
    array = np.ascontiguousarray(array)
    if str(array.dtype) not in PLAIN or not array.size:
        return tvm.runtime.tensor(array)
    memory = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    memory.of = array  # type: ignore[attr-defined]  # as long as the tensor is there
    shared: Any = np.frombuffer(memoryview(memory), array.dtype)
    return tvm_ffi.from_dlpack(shared.reshape(array.shape))


def bytes_of(tensor: tvm.runtime.Tensor) -> np.ndarray:
    """The bytes of a tensor in the host's memory, whatever its dtype, as `view_of`: uint8, one dimension."""
    array = np.from_dlpack(tensor._create_view((nbytes_of(tensor),), "uint8"))
    array.flags.writeable = False
    return array


def nbytes_of(tensor: tvm.runtime.Tensor) -> int:
    """The size of a tensor in bytes."""
    dtype = tvm.DataType(str(tensor.dtype))
    return math.prod(tensor.shape) * dtype.bits * dtype.lanes // 8


def same_bytes(one: tvm.runtime.Tensor, other: tvm.runtime.Tensor) -> bool:
    """Whether two tensors have the same bytes."""
    first, second = bytes_of(one), bytes_of(other)
    if first.ctypes.data == second.ctypes.data or first.size != second.size:
        return first.size == second.size
    return all(
        np.array_equal(first[at : at + AT_ONCE], second[at : at + AT_ONCE])
        for at in range(0, first.size, AT_ONCE)
    )
