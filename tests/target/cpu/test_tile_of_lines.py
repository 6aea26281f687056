# SPDX-License-Identifier: Apache-2.0
"""Transposed tiles that no cache holds are put together in the first one, and are what NumPy says."""

from __future__ import annotations

import platform

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.relax import op
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target.cpu.lower import lower

from tests.extracted import extracted
from tests.small_cpu import SMALL

from .support import llvm_target

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86 stores")


@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "tiled"),
    [
        ((256, 192), (1, 0), "float32", True),
        ((2, 64, 16, 32), (0, 2, 3, 1), "float32", True),
        ((128, 320), (1, 0), "float16", True),
        ((128, 160), (1, 0), "float64", True),
        ((64, 100), (1, 0), "float32", False),  # 100 columns of the operand fill no lines
        ((100, 64), (1, 0), "float32", False),  # a result of rows that are no lines
        ((16, 64), (1, 0), "float32", False),  # in the cache
    ],
)
@pytest.mark.parametrize("shift", [0, 1])
def test_tiles_are_put_together(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, tiled: bool, shift: int
) -> None:
    made = from_relax(lambda x: op.permute_dims(x, list(axes)), [shape], lambda *_: None, dtypes=[dtype])
    scheduled = apply_default(made.func.with_attr("global_symbol", "turned"), SMALL)
    code = lower(extracted(scheduled, SMALL), scheduled)
    assert ("lines" in str(code)) == tiled
    run = tvm.compile(tvm.IRModule({"turned": code}), target=llvm_target())["turned"]
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    want = x.transpose(axes)
    # stores past the caches are of whole lines: another address goes through them
    room = np.zeros(want.size + 64, dtype)
    first = (-room.ctypes.data % 64) // room.itemsize + shift
    out = room[first : first + want.size].reshape(want.shape)
    run(tvm.runtime.tensor(x), tvm_ffi.from_dlpack(out))
    np.testing.assert_array_equal(out, want)
    assert not room[:first].any() and not room[first + want.size :].any()
