# SPDX-License-Identifier: Apache-2.0
"""Kernels for each version of cncc are spelled as it has them, and compute the same."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from tvm import tirx
from tvm.script import tirx as T
from uir_tvm.errors import UirError
from uir_tvm.options import CompileOptions
from uir_tvm.target.bang.toolkit import CNCC


@T.prim_func(s_tir=True)
def floors_and_logs(x: T.Buffer((8, 96), "float32"), y: T.Buffer((8, 96), "float32")):
    for i, j in T.grid(8, 96):
        with T.sblock("y"):
            a, b = T.axis.remap("SS", [i, j])
            y[a, b] = T.floor(x[a, b] * T.float32(10.0)) + T.ceil(x[a, b]) + T.log(T.fabs(x[a, b]))


@T.prim_func(s_tir=True)
def joined_columns(
    a: T.Buffer((16, 24), "float16"), b: T.Buffer((16, 40), "float16"), y: T.Buffer((16, 64), "float16")
):
    for i, j in T.grid(16, 64):
        with T.sblock("y"):
            r, c = T.axis.remap("SS", [i, j])
            y[r, c] = T.if_then_else(c < 24, a[r, T.min(c, 23)], b[r, T.max(c - 24, 0)])


def _source(func: tirx.PrimFunc, cncc: str) -> tuple[str, uir_tvm.runtime.Executable]:
    exe = uir_tvm.compile(func, target="uir-bang", options=CompileOptions(device="model", cncc=cncc))
    (kernel,) = exe.info.kernels
    assert not kernel.fallback, kernel.fallback
    return kernel.texts["source"], exe


@pytest.mark.parametrize("cncc", CNCC.versions)
def test_names_are_those_of_the_version(cncc: str) -> None:
    source, exe = _source(floors_and_logs, cncc)
    assert source.startswith(f"// for mtp_372, cncc {cncc}\n")
    earlier = cncc == "3"
    for early, late in (
        ("__bang_log(", "__bang_log2("),
        ("__bang_float2int_dn(", "__bang_float2int32_tz("),
        ("__bang_int2float(", "__bang_int322float_rn("),
        ("sync;", "__sync_io();"),
    ):
        assert (early in source) is earlier and (late in source) is not earlier, (early, late, source)
    generator = np.random.default_rng(7)
    x = generator.uniform(-5, 5, (8, 96)).astype(np.float32)
    x[0, :8] = [1, -1, 2.0**23 + 1, -(2.0**24), 0.5, -0.5, 1e30, -1e30]
    wanted = np.floor(x * np.float32(10)) + np.ceil(x) + np.log(np.abs(x))
    np.testing.assert_allclose(exe(x), wanted, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("cncc", CNCC.versions)
def test_copies_within_nram_are_ordered_under_every_reading(cncc: str) -> None:
    """No asynchronous copy within NRAM: header and kernels order it by different waits."""
    source, exe = _source(joined_columns, cncc)
    for line in source.splitlines():
        assert not ("__memcpy_async" in line and "NRAM2NRAM" in line), line
    generator = np.random.default_rng(8)
    a = generator.standard_normal((16, 24)).astype(np.float16)
    b = generator.standard_normal((16, 40)).astype(np.float16)
    np.testing.assert_array_equal(exe(a, b), np.concatenate([a, b], axis=1))


def test_an_architecture_that_a_version_does_not_know_is_refused() -> None:
    for cncc, refused in (("3", True), ("4", False)):
        options = CompileOptions(device="model", cncc=cncc)
        exe = uir_tvm.compile(floors_and_logs, target="uir-bang:mlu590", options=options)
        assert ("cncc 3 does not know" in exe.info.kernels[0].fallback) is refused


def test_another_version_is_refused() -> None:
    with pytest.raises(UirError, match="no version of cncc"):
        CompileOptions(cncc="5")
