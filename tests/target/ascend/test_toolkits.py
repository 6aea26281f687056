# SPDX-License-Identifier: Apache-2.0
"""Kernels for each version of CANN have the names of its headers, and compute the same on the host model."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
import uir_tvm
from tvm import tirx
from tvm.script import tirx as T
from uir_tvm.errors import UirError
from uir_tvm.options import CompileOptions
from uir_tvm.target.ascend import apis
from uir_tvm.target.ascend.toolkit import CANN

#: Name until a version, name from it on, that version.
RENAMED = (
    ("CompareScalar", "Compares", "9.0"),
    ("ToBfloat16", "Cast", "9.0"),
    ("WholeReduceMax", "ReduceRepeat<ReduceType::MAX>", "9.1"),
    ("WholeReduceSum", "ReduceRepeat<ReduceType::SUM>", "9.1"),
    ("BlockReduceMax", "ReduceDataBlock<ReduceType::MAX>", "9.1"),
    ("BlockReduceSum", "ReduceDataBlock<ReduceType::SUM>", "9.1"),
)


@T.prim_func(s_tir=True)
def spread_of_rows(x: T.Buffer((48, 1024), "float32"), y: T.Buffer((48,), "float32")):
    """Where no element is above one half, the sum of the row, else its largest."""
    most = T.sblock_alloc_buffer((48,))
    total = T.sblock_alloc_buffer((48,))
    for i, k in T.grid(48, 1024):
        with T.sblock("most"):
            a, r = T.axis.remap("SR", [i, k])
            with T.init():
                most[a] = T.float32(-3e38)
            most[a] = T.max(most[a], x[a, r])
    for i, k in T.grid(48, 1024):
        with T.sblock("total"):
            a, r = T.axis.remap("SR", [i, k])
            with T.init():
                total[a] = T.float32(0)
            total[a] = total[a] + x[a, r]
    for i in range(48):
        with T.sblock("y"):
            a = T.axis.remap("S", [i])
            y[a] = T.Select(most[a] > T.float32(0.5), T.asin(most[a]), total[a])


@T.prim_func(s_tir=True)
def padded(x: T.Buffer((40, 48), "bfloat16"), y: T.Buffer((40, 64), "bfloat16")):
    for i, j in T.grid(40, 64):
        with T.sblock("y"):
            a, b = T.axis.remap("SS", [i, j])
            y[a, b] = T.if_then_else(b < 48, x[a, T.min(b, 47)], T.bfloat16(1.5))


def _compiled(func: tirx.PrimFunc, cann: str) -> tuple[str, uir_tvm.runtime.Executable]:
    exe = uir_tvm.compile(func, target="uir-ascend", options=CompileOptions(device="model", cann=cann))
    (kernel,) = exe.info.kernels
    assert not kernel.fallback, kernel.fallback
    return kernel.texts["source"], exe


@pytest.mark.parametrize("cann", CANN.versions)
def test_names_are_those_of_the_version(cann: str) -> None:
    sources = {}
    generator = np.random.default_rng(5)
    x = generator.uniform(-1, 1, (48, 1024)).astype(np.float32)
    x[::2] = np.minimum(x[::2], np.float32(0.25))
    sources["rows"], exe = _compiled(spread_of_rows, cann)
    wanted = np.where(x.max(1) > 0.5, np.arcsin(x.max(1).astype(np.float64)), x.astype(np.float64).sum(1))
    np.testing.assert_allclose(exe(x), wanted, rtol=2e-6, atol=2e-5)

    sources["padded"], exe = _compiled(padded, cann)
    narrow = generator.standard_normal((40, 48)).astype(ml_dtypes.bfloat16)
    wanted = np.pad(narrow, ((0, 0), (0, 16)), constant_values=ml_dtypes.bfloat16(1.5))
    np.testing.assert_array_equal(exe(narrow), wanted)

    text = "\n".join(sources.values())
    assert all(source.startswith(f"// for dav-2201, CANN {cann}\n") for source in sources.values())
    order = CANN.versions.index
    for earlier, later, since in RENAMED:
        renamed = order(cann) >= order(since)
        shown = [name for name in (earlier, later) if re.search(rf"(?<![\w.]){re.escape(name)}\(", text)]
        if later != "Cast":  # which is the name of other functions too
            assert shown in ([later if renamed else earlier], []), (earlier, shown)
        assert earlier not in shown or not renamed, (earlier, shown)
    found = {early for early, late, _ in RENAMED if f"{early}(" in text or f"{late}(" in text}
    assert len(found) >= 5, found


def test_both_orders_of_mask_and_repeats_compute_the_same() -> None:
    """The text differs by names and order alone: values are the same, bit by bit."""
    x = np.random.default_rng(6).uniform(-1, 0.25, (48, 1024)).astype(np.float32)
    results = {cann: _compiled(spread_of_rows, cann)[1](x) for cann in CANN.versions}
    for cann in CANN.versions[1:]:
        np.testing.assert_array_equal(results[cann], results[CANN.default])


def test_the_default_is_what_all_releases_declare() -> None:
    assert CompileOptions().cann == CANN.default == "8"
    source, _ = _compiled(spread_of_rows, CANN.default)
    for row in apis.table():
        assert row.toolkits == "" or f"{row.name}::" not in source


def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UirError, match="no version of CANN") as refused:
        CompileOptions(cann="7")
    assert "8, 9.0, 9.1" in str(refused.value)
    monkeypatch.setenv("UIR_CANN", "10")
    with pytest.raises(UirError, match="UIR_CANN"):
        CompileOptions()
    monkeypatch.setenv("UIR_CANN", "9.1")
    assert CompileOptions().cann == "9.1"
