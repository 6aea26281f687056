# SPDX-License-Identifier: Apache-2.0
"""Library operators of Cambricon MLUs on the host model, and the views that CNNL is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs, OperandLayout
from uir_tvm.library.library_tables import library_of
from uir_tvm.target.bang import library as bang

Array = np.ndarray[Any, Any]
#: Sums in float32, one rounding to the type: half an ulp, relative to the largest result.
TOLERANCE = {"float32": 1e-6, "float16": 1e-3}


def random(seed: int, shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(got: Array, want: Array, dtype: str) -> bool:
    scale = max(1.0, float(np.abs(want).max()))
    return float(np.abs(got.astype(np.float64) - want).max()) <= TOLERANCE[dtype] * scale


HEADS = MatmulAttrs(
    batch=(2, 3),
    m=4,
    n=4,
    k=5,
    a=OperandLayout((60, 5, 15, 1)),
    b=OperandLayout((60, 5, 1, 15)),
    out=OperandLayout((48, 16, 4, 1)),
    alpha=0.25,
)


@pytest.mark.parametrize("dtype", sorted(bang.TABLE.dtypes))
def test_a_product_on_the_host_model(dtype: str) -> None:
    """Heads of queries and keys where they lie, times a factor."""
    a, b = (random(seed, (2, 4, 15), dtype) for seed in (1, 2))
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (a, b)]
    out = tvm.runtime.empty((2, 3, 4, 4), dtype, tvm.ext_dev(0))
    tvm_ffi.get_global_func(bang.MATMUL)(*tensors, HEADS.to_json(), out)
    want = reference.matmul(HEADS, a, b, None, None, out=np.zeros((2, 3, 4, 4), dtype))
    assert close(out.numpy(), want, dtype)


def test_a_convolution_on_the_host_model() -> None:
    attrs = Conv2dAttrs(input=(1, 3, 8, 8), weight=(4, 3, 3, 3), padding=(1, 1, 1, 1))
    x, w = (random(i, s, "float32") for i, s in enumerate((attrs.input, attrs.weight)))
    out = tvm.runtime.empty(attrs.output, "float32", tvm.ext_dev(0))
    tensors = [tvm.runtime.tensor(array, tvm.ext_dev(0)) for array in (x, w)]
    tvm_ffi.get_global_func(bang.CONV2D)(*tensors, attrs.to_json(), out)
    assert close(out.numpy(), reference.conv2d(attrs, x, w, None), "float32")


def test_what_cnnl_is_asked_for_are_views() -> None:
    """Batches that lie as one are one; shapes and strides are those of the tensors."""
    rows = tvm_ffi.get_global_func("uir.library.bang.product")(HEADS.to_json())
    a, b, out = (dict(row) for row in rows)
    assert (list(a["shape"]), list(a["strides"])) == ([2, 3, 4, 5], [60, 5, 15, 1])
    assert (list(b["shape"]), list(b["strides"])) == ([2, 3, 5, 4], [60, 5, 1, 15])
    assert (list(out["shape"]), list(out["strides"])) == ([2, 3, 4, 4], [48, 16, 4, 1])


def test_what_cnnl_has_not_is_refused() -> None:
    attrs = MatmulAttrs.contiguous((4, 5), (5, 6), bias=True)
    with pytest.raises(ValueError, match="a term to add"):
        tvm_ffi.get_global_func("uir.library.bang.product")(attrs.to_json())


def test_it_is_the_library_of_the_target() -> None:
    assert library_of(["uir", "bang"]) is bang.TABLE
    assert not bang.TABLE.allows(["bias"]) and bang.TABLE.takes("matmul", "float32", "float32")
