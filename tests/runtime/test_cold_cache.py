# SPDX-License-Identifier: Apache-2.0
"""What is done between two calls of a kernel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tvm
from uir_tvm import hardware
from uir_tvm.runtime.cold_cache import WORD, ColdCache, cache_of

HW = hardware.get("host")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (1000, 77)])
def test_tensors_are_written_again(dtype: str, shape: tuple[int, ...]) -> None:
    """In whole words, whatever they hold; what is left of a word stays."""
    array = np.ones(shape, dtype)
    tensor = tvm.runtime.tensor(np.zeros_like(array))
    ColdCache(HW, [tensor], [array])()
    whole = array.nbytes // WORD.itemsize * WORD.itemsize
    held = np.ascontiguousarray(tensor.numpy()).reshape(-1).view(np.uint8)
    np.testing.assert_array_equal(
        held[:whole], np.ascontiguousarray(array).reshape(-1).view(np.uint8)[:whole]
    )
    assert not held[whole:].any()


def test_what_would_fill_the_cache_is_left() -> None:
    """A table of which a kernel reads some rows lies in memory, in a model too."""
    large = np.ones(cache_of(HW) // 4, np.float32)
    tensor = tvm.runtime.tensor(np.zeros_like(large))
    ColdCache(HW, [tensor], [large])()
    assert not tensor.numpy().any()
