# SPDX-License-Identifier: Apache-2.0
"""A kernel with open sizes is one executable: called with any, held to its ranges, saved, explained."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import uir_tvm
from tvm import te, tirx
from uir_tvm import CompileOptions
from uir_tvm.errors import NotCompiledError
from uir_tvm.tune.database import ScheduleDatabase

WIDTH = 96
RNG = np.random.default_rng(0)
SHIFT = RNG.standard_normal(WIDTH, np.float32)


def rows(**sizes: Any) -> tirx.PrimFunc:
    n = tirx.Var("n", "int64")
    x, b = te.placeholder((n, WIDTH), name="x"), te.placeholder((WIDTH,), name="b")
    y = te.compute((n, WIDTH), lambda i, j: te.tanh(x[i, j] + b[j]), "y")
    func = te.create_prim_func([x, b, y])
    return func.with_attr("uir.sizes", sizes) if sizes else func


def expect_right(exe: Any, *sizes: int) -> None:
    for n in sizes:
        x = RNG.standard_normal((n, WIDTH), np.float32)
        np.testing.assert_allclose(exe(x, SHIFT), np.tanh(x + SHIFT), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-cuda", "uir-ascend", "uir-bang"])
def test_one_compilation_serves_all_sizes(target: str, tmp_path: pathlib.Path) -> None:
    options = CompileOptions(device="auto" if target == "uir-cpu" else "model")
    exe = uir_tvm.compile(rows(), target, options=options)
    expect_right(exe, 5, 1, 0, 64, 131)
    report = exe.report()
    (program,) = report["programs"]
    assert report["compiled"] == 1 and report["imported_by_shape"] == ""
    assert program["conditions"] == ["0 <= n"] and program["shapes"] == 5
    loaded = uir_tvm.load(exe.save(tmp_path / "rows.uir"))
    expect_right(loaded, 7, 0)
    assert loaded.compiled == 0


def test_ranges_and_divisors_are_conditions(tmp_path: pathlib.Path) -> None:
    exe = uir_tvm.compile(rows(n=[16, 512, 16]))
    loaded = uir_tvm.load(exe.save(tmp_path / "rows.uir"))
    assert loaded.report()["programs"][0]["conditions"] == ["16 <= n <= 512", "n % 16 == 0"]
    expect_right(loaded, 16, 512)
    for n in (8, 24, 528):
        with pytest.raises(NotCompiledError, match="without code"):
            loaded(np.zeros((n, WIDTH), np.float32), SHIFT)


def test_chosen_sizes_and_explanations_are_of_numbers() -> None:
    exe = uir_tvm.compile(rows(), options=CompileOptions(specialize=[{"n": 3}]))
    (made,) = exe.specializations
    assert made.made == "ahead of time" and not exe.wholes
    expect_right(exe, 3, 4)
    assert exe.compiled == 2 and len(exe.wholes) == 1
    x = RNG.standard_normal((9, WIDTH), np.float32)
    explained = exe.specialized(x, SHIFT).report(explain=True)["explain"]
    assert len(explained["kernels"]) == 1


def test_a_database_chooses_for_all_sizes(tmp_path: pathlib.Path) -> None:
    """Also where it has nothing: then the kernel's recipe serves all of them."""
    ScheduleDatabase(tmp_path)
    exe = uir_tvm.compile(rows(), database=tmp_path)
    expect_right(exe, 3, 4)
    assert len(exe.wholes) == 1 and not exe.report()["imported_by_shape"]


def test_what_has_no_kernel_for_all_sizes_is_compiled_for_each() -> None:
    n = tirx.Var("n", "int64")
    x = te.placeholder((n, n), name="x")
    func = te.create_prim_func([x, te.compute((n, n), lambda i, j: x[j, i] * 2.0, name="y")])
    exe = uir_tvm.compile(func)
    for size in (3, 8):
        x = RNG.standard_normal((size, size), np.float32)
        np.testing.assert_array_equal(exe(x), x.T * 2)
    report = exe.report()
    assert report["compiled"] == 2 and not report["programs"] and report["imported_by_shape"]
