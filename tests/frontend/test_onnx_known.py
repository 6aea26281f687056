# SPDX-License-Identifier: Apache-2.0
"""What is known of a graph's constants is kept once: large ones in the file's message alone."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from onnx import numpy_helper
from uir_tvm.frontend.onnx.known import KEPT_BYTES, Known

AT_MOST = KEPT_BYTES // 4


@pytest.mark.parametrize(("count", "is_kept"), [(AT_MOST, True), (AT_MOST + 1, False)])
def test_large_constants_are_not_kept_twice(count: int, is_kept: bool) -> None:
    """An array of a large constant goes when its reader lets it go; its numbers can be read again."""
    numbers = np.arange(count, dtype="float32")
    known = Known()
    known.add_tensor(numpy_helper.from_array(numbers, "weight"))
    array = known.array("weight")
    assert array is not None
    watched = weakref.ref(array)
    del array
    assert (watched() is not None) == is_kept
    again = known.array("weight")
    assert again is not None and known.is_constant("weight")
    np.testing.assert_array_equal(again, numbers)
