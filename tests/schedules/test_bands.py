# SPDX-License-Identifier: Apache-2.0
"""Results whose rows are a few bytes of the operand's lines are made in bands, and are right."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from tvm_ffi.structural import structural_equal
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, interpreter
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu.presets import PRESETS
from uir_tvm.tune.spaces import design_spaces
from uir_tvm.verify import verify

from tests.as_programs import run_igraph
from tests.extracted import extracted

CPU = hardware.get("avx2-4core")


def turned(shape: tuple[int, ...], dtype: str = "float32") -> tirx.PrimFunc:
    """3 x with the last two dimensions but one exchanged."""
    *outer, n, m, c = shape
    x = te.placeholder((*outer, m, n, c), dtype, name="x")
    y = te.compute(shape, lambda *i: x(*i[:-3], i[-2], i[-3], i[-1]) * tirx.const(3, dtype), name="y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", "turned")


def rows_of(func: tirx.PrimFunc, hw: HardwareModel = CPU) -> int:
    """Rows of the tiles that the default schedule makes: of the slice that is stored."""
    graph = extracted(apply_default(func, hw), hw)
    return next(int(iop.target.rows) for iop, _ in graph.walk() if iop.target.pointer.role == "out")


@pytest.mark.parametrize(
    ("shape", "dtype", "rows"),
    [
        ((58, 784, 2), "float32", 16),
        ((3, 40, 96, 4), "float32", 8),
        ((40, 96, 2), "float64", 8),
        ((40, 96, 4), "float16", 16),
        ((58, 90, 2), "float32", 15),
        ((58, 46, 2), "float32", 46),  # 46 has no divisor of one or two lines
        ((58, 96, 8), "float32", 96),  # rows of half a line
        ((16, 256, 64), "float32", 8),  # half a page of rows of lines, where they leave the second cache
        ((2, 16, 60, 128), "float32", 4),
        ((16, 64, 64), "float32", 32),  # it holds them
    ],
)
def test_a_band_is_one_or_two_lines_of_the_result(shape: tuple[int, ...], dtype: str, rows: int) -> None:
    func = turned(shape, dtype)
    assert rows_of(func) == rows
    graph = extracted(apply_default(func, CPU), CPU)
    verify(graph)
    *outer, n, m, c = shape
    x = np.random.default_rng(0).standard_normal((*outer, m, n, c)).astype(dtype)
    wanted = np.swapaxes(x, -3, -2) * x.dtype.type(3)
    np.testing.assert_array_equal(interpreter.run(graph, x)[0].reshape(shape), wanted)
    np.testing.assert_array_equal(run_igraph(graph, "uir-cpu", x)[0].reshape(shape), wanted)


@pytest.mark.parametrize(
    ("figures", "rows"),
    [
        ({}, 8),  # half a page of rows of 256 bytes
        ({"band_bytes": 4096, "l3_bytes": 1 << 25}, 16),
        ({"band_bytes": 4096, "l3_bytes": 1 << 18}, 8),  # no cache holds the result
    ],
)
def test_a_processor_says_how_many_rows_are_made_at_once(figures: dict[str, int], rows: int) -> None:
    given = {**{str(k): v for k, v in CPU.figures.items()}, **figures}
    hw = HardwareModel("told", "cpu", 4, 1, CPU.reg_bytes, 0, CPU.vector_bytes, given)
    assert rows_of(turned((16, 256, 64)), hw) == rows
    assert PRESETS["znver5"]().figures["band_bytes"] == 4096
    assert "band_bytes" not in PRESETS["znver4"]().figures


def test_open_sizes_have_no_bands() -> None:
    """A divisor of the representative size is none of others."""
    m = tirx.Var("m", "int64")
    x = te.placeholder((m, 58, 2), name="x")
    func = te.create_prim_func([x, te.compute((58, m, 2), lambda i, j, k: x[j, i, k] * 3.0, name="y")])
    built = tvm.build(tvm.IRModule({"main": func.with_attr("global_symbol", "main")}), target="uir-cpu")
    for rows in (1, 16, 37):
        given = np.random.default_rng(0).standard_normal((rows, 58, 2)).astype(np.float32)
        found = tvm.runtime.tensor(np.zeros((58, rows, 2), np.float32))
        built["main"](tvm.runtime.tensor(given), found)
        np.testing.assert_array_equal(found.numpy(), np.swapaxes(given, 0, 1) * np.float32(3))


def test_traces_with_bands_are_stock() -> None:
    for space in design_spaces(turned((40, 96, 2)), CPU):
        sch = Schedule(tvm.IRModule({"main": space.begun}), debug_mask="none")
        Trace.apply_json_to_schedule(space.schedule.trace.as_json(), sch)
        assert structural_equal(sch.mod["main"], space.schedule.mod["main"])


def test_devices_walk_as_before() -> None:
    """They have no cache lines to use up: their tiles are those of their memories."""
    hw = hardware.get("910b2", "ascend")
    assert rows_of(turned((58, 784, 2)), hw) != 16
