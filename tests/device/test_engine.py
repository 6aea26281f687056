# SPDX-License-Identifier: Apache-2.0
"""The engine's memory, by its C interface."""

import ctypes

import numpy as np
import pytest
from uir_tvm.device import text_model


@pytest.fixture(scope="module")
def model() -> ctypes.CDLL:
    model = ctypes.CDLL(str(text_model.library()))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    model.uir_simt_alloc.argtypes, model.uir_simt_alloc.restype = [size, size, ctypes.c_char_p], pointer
    model.uir_simt_release.argtypes = [pointer]
    model.uir_simt_copy.argtypes = [pointer, pointer, size]
    model.uir_simt_mark_written.argtypes = [pointer, size]
    model.uir_simt_contains.argtypes = [pointer, size]
    model.uir_simt_first_unwritten.argtypes = [pointer, size]
    model.uir_simt_first_unwritten.restype = ctypes.c_int64
    return model


def test_allocations_are_aligned_apart_and_bounded(model: ctypes.CDLL) -> None:
    first, second = (model.uir_simt_alloc(1000, 4096, None) for _ in range(2))
    assert first % 4096 == second % 4096 == 0
    assert abs(second - first) >= 1000 + 65536
    assert model.uir_simt_contains(first, 1000) and not model.uir_simt_contains(first, 1001)
    assert not model.uir_simt_contains(first - 1, 2)
    assert model.uir_simt_release(first) == 0 and not model.uir_simt_contains(first, 1)
    assert model.uir_simt_release(first) == 1, "a second release is refused"
    assert model.uir_simt_release(second + 8) == 1, "only the first byte names an allocation"
    assert model.uir_simt_release(second) == 0


def test_written_bytes_follow_copies(model: ctypes.CDLL) -> None:
    rng = np.random.default_rng(11)
    a, b = (model.uir_simt_alloc(4096, 256, None) for _ in range(2))
    host = rng.integers(0, 255, 4096).astype(np.uint8)
    written = np.zeros(4096, bool)
    for _ in range(20):
        begin, end = sorted(rng.integers(0, 4097, 2).tolist())
        assert model.uir_simt_copy(a + begin, host[begin:].ctypes.data, end - begin) == 0
        written[begin:end] = True
        if written.sum() > 3000:
            break
        # Within the engine bytes keep their state, at any offset.
        shift = int(rng.integers(0, 512))
        assert model.uir_simt_copy(b + shift, a, 4096 - shift) == 0
        expected = written[: 4096 - shift]
        missing = np.flatnonzero(~expected)
        assert model.uir_simt_first_unwritten(b + shift, 4096 - shift) == (missing[0] if len(missing) else -1)
    back = np.zeros(4096, np.uint8)
    assert model.uir_simt_copy(back.ctypes.data, a, 4096) == 0
    np.testing.assert_array_equal(back[written], host[written])
    for address in (a, b):
        model.uir_simt_release(address)


def test_copies_that_leave_an_allocation_are_refused(model: ctypes.CDLL) -> None:
    a = model.uir_simt_alloc(100, 256, None)
    host = np.zeros(200, np.uint8)
    assert model.uir_simt_copy(a, host.ctypes.data, 101) == 1
    assert model.uir_simt_copy(host.ctypes.data, a + 50, 51) == 1
    assert model.uir_simt_first_unwritten(a, 100) == 0
    assert model.uir_simt_mark_written(a, 100) == 0 and model.uir_simt_first_unwritten(a, 100) == -1
    assert model.uir_simt_mark_written(a + 1, 100) == 1
    model.uir_simt_release(a)
    assert model.uir_simt_copy(a, host.ctypes.data, 1) == 1, "released memory takes no copies"


def test_released_addresses_are_given_again_with_nothing_written(model: ctypes.CDLL) -> None:
    # More than the reserved range holds at once: 256 GiB in steps of 8 GiB, never touched.
    for _ in range(40):
        a = model.uir_simt_alloc(8 << 30, 256, None)
        assert a, "the range is used again"
        assert model.uir_simt_first_unwritten(a, 64) == 0
        assert model.uir_simt_release(a) == 0
