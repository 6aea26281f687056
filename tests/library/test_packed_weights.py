# SPDX-License-Identifier: Apache-2.0
"""A weight that is packed already, and held by somebody, is not packed again."""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from attrs import evolve
from uir_tvm.library import cpu
from uir_tvm.library.cpu import Conv2dAttrs, MatmulAttrs, OperandLayout


def random(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def address(blob: Any) -> int:
    return np.from_dlpack(blob).ctypes.data


def test_the_held_one_is_found_by_contents_and_format() -> None:
    w, attrs = random(1, 70, 90), MatmulAttrs.contiguous((33, 70), (70, 90), packed=True)
    first = cpu.pack_weight(w, attrs)
    assert address(cpu.pack_weight(w.copy(), attrs)) == address(first)
    turned = evolve(attrs, b=OperandLayout((1, 70), 0))
    assert address(cpu.pack_weight(np.ascontiguousarray(w.T), turned)) == address(first)
    other = w.copy()
    other[3, 5] += 1
    changed = cpu.pack_weight(other, attrs)
    assert address(changed) != address(first)
    assert np.array_equal(cpu.unpack_weight(changed).view(np.float32).reshape(w.shape), other)
    half = MatmulAttrs.contiguous((33, 70), (70, 90), packed=True)
    assert address(cpu.pack_weight(w.astype(np.float16), half)) != address(first)


def resident() -> int:
    """Bytes of memory of this process, without what its allocator keeps of memory that was given back."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_view_of_it_holds_it_and_nothing_else_does() -> None:
    """As a constant of a module does; memory of weights that nobody reads is given back."""
    w, attrs = random(2, 2000, 3000), MatmulAttrs.contiguous((33, 2000), (2000, 3000), packed=True)
    blob = cpu.pack_weight(w, attrs)
    constant, at = tvm.runtime.from_dlpack(blob), address(blob)
    del blob
    gc.collect()
    assert address(cpu.pack_weight(w, attrs)) == at
    before = resident()
    del constant
    gc.collect()
    assert before - resident() > w.nbytes // 2
    assert np.array_equal(cpu.unpack_weight(cpu.pack_weight(w, attrs)).view(np.float32).reshape(w.shape), w)


def test_a_convolution_s_too() -> None:
    w = random(3, 16, 8, 3, 3)
    attrs = Conv2dAttrs(input=(1, 8, 9, 9), weight=w.shape, packed=True)
    first = cpu.pack_weight(w, attrs)
    assert address(cpu.pack_weight(w.copy(), attrs)) == address(first)


def test_a_blob_says_which_library_it_was_packed_for() -> None:
    """One of another library is another blob, though its bytes may lie alike."""
    w, attrs = random(4, 20, 30), MatmulAttrs.contiguous((33, 20), (20, 30), packed=True)
    first = cpu.pack_weight(w, attrs)
    if not cpu.available():
        pytest.skip("there is no library")
    tvm_ffi.get_global_func("uir.library.cpu.set_enabled")(False)
    try:
        other = cpu.pack_weight(w, attrs)
    finally:
        tvm_ffi.get_global_func("uir.library.cpu.set_enabled")(True)
    assert cpu.describe_weight(other)["library"] == "none" != cpu.describe_weight(first)["library"]
