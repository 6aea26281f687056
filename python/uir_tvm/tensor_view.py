# SPDX-License-Identifier: Apache-2.0
"""The elements of a tensor of TVM as a NumPy array on the same memory: TVM's own ``numpy()`` copies them."""

from __future__ import annotations

import numpy as np
import tvm

#: dtypes that NumPy takes through DLPack; others by way of a copy.
PLAIN = frozenset(
    ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
    + ["float16", "float32", "float64"]
)


def view_of(tensor: tvm.runtime.Tensor) -> np.ndarray:
    """The elements of a tensor in the host's memory, to be read: an array that cannot be written."""
    if str(tensor.dtype) not in PLAIN or tensor.device.type != "cpu":
        return tensor.numpy()
    array = np.from_dlpack(tensor)
    array.flags.writeable = False
    return array
