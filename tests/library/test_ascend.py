# SPDX-License-Identifier: Apache-2.0
"""Library operators of Ascend devices on the host model; what aclnn is asked for: tests/export."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.library import ascend, reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, View
from uir_tvm.library.registry import ASCEND, library_of

Array = np.ndarray[Any, Any]
#: Sums in float32, one rounding to the type: half an ulp, relative to the largest result.
TOLERANCE = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


def random(seed: int, shape: tuple[int, ...], dtype: str) -> Array:
    wide = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return wide.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def close(got: Array, want: Array, dtype: str) -> bool:
    scale = max(1.0, float(np.abs(want).max()))
    return float(np.abs(got.astype(np.float64) - want).max()) <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", sorted(ASCEND.dtypes))
def test_a_product_on_the_host_model(dtype: str) -> None:
    """Strided operands and a residual; what the output's view leaves out keeps its values."""
    attrs = MatmulAttrs(
        batch=(2,),
        m=4,
        n=6,
        k=5,
        a=View((48, 12, 1), 3),
        b=View((0, 1, 9), 2),
        out=View((48, 12, 1), 5),
        residual="before_activation",
    )
    shapes = ((2, 4, 12), (6, 9), (2, 4, 12))
    a, b, residual = (random(seed, shape, dtype) for seed, shape in enumerate(shapes))
    before = random(9, (2, 4, 12), dtype)
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (a, b, residual, before)]
    tvm_ffi.get_global_func(ascend.MATMUL)(*tensors[:-1], attrs.to_json(), tensors[-1])
    assert close(tensors[-1].numpy(), reference.matmul(attrs, a, b, None, residual, out=before), dtype)


def test_a_convolution_on_the_host_model() -> None:
    attrs = Conv2dAttrs(input=(1, 3, 8, 8), weight=(4, 3, 3, 3), padding=(1, 1, 1, 1), bias=True)
    x, w, bias = (random(i, s, "float32") for i, s in enumerate((attrs.input, attrs.weight, (4,))))
    out = tvm.runtime.empty(attrs.output, "float32", tvm.ext_dev(0))
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (x, w, bias)]
    tvm_ffi.get_global_func(ascend.CONV2D)(*tensors, attrs.to_json(), out)
    assert close(out.numpy(), reference.conv2d(attrs, x, w, bias), "float32")


def test_memory_of_the_host_is_refused() -> None:
    a = tvm_ffi.from_dlpack(random(1, (4, 4), "float32"))
    with pytest.raises(ValueError, match="copy it to the device"):
        tvm_ffi.get_global_func(ascend.MATMUL)(a, a, MatmulAttrs.contiguous((4, 4), (4, 4)).to_json(), a)


def test_it_is_the_library_of_the_target() -> None:
    assert library_of(["uir", "ascend"]) is ASCEND
