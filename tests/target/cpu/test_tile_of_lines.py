# SPDX-License-Identifier: Apache-2.0
"""Transposed tiles that no cache holds go to memory by whole lines, and are what NumPy says."""

from __future__ import annotations

import platform

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.relax import op
from uir_tvm.igraph import HardwareModel, interpreter
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target.cpu.lower import lower

from tests.extracted import extracted
from tests.small_cpu import SMALL

from .support import llvm_target

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86 stores")


#: How the result goes to memory: by runs of lines of a tile, line by line, or through the caches.
TILED, BY_LINES, CACHED = "tiled", "by lines", "cached"


@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "way"),
    [
        ((256, 192), (1, 0), "float32", TILED),
        ((2, 128, 16, 32), (0, 2, 3, 1), "float32", TILED),
        ((2, 128, 8, 56), (0, 2, 3, 1), "float32", TILED),  # rows of the operand are no whole lines
        ((2, 128, 16, 24), (0, 2, 3, 1), "float32", TILED),
        ((256, 320), (1, 0), "float16", TILED),
        ((128, 160), (1, 0), "float64", TILED),
        ((512, 128), (1, 0), "int8", TILED),
        ((2, 64, 16, 32), (0, 2, 3, 1), "float32", BY_LINES),  # lines of two neighbours are 256 bytes apart
        ((2, 32, 16, 56), (0, 2, 3, 1), "float32", BY_LINES),
        ((128, 320), (1, 0), "float16", TILED),  # a line is of 32 rows of the operand
        ((64, 320), (1, 0), "int8", BY_LINES),
        ((64, 100), (1, 0), "float32", CACHED),  # 100 columns of the operand are no vectors
        ((100, 64), (1, 0), "float32", CACHED),  # a result of rows that are no lines
        ((16, 64), (1, 0), "float32", CACHED),  # in the cache
    ],
)
@pytest.mark.parametrize("shift", [0, 1])
def test_tiles_go_to_memory_by_lines(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, way: str, shift: int
) -> None:
    made = from_relax(lambda x: op.permute_dims(x, list(axes)), [shape], lambda *_: None, dtypes=[dtype])
    scheduled = apply_default(made.func.with_attr("global_symbol", "turned"), SMALL)
    code = lower(extracted(scheduled, SMALL), scheduled)
    assert ("lines" in str(code)) == (way == TILED)
    assert ("_streamed" in str(code)) == (way == BY_LINES)
    run = tvm.compile(tvm.IRModule({"turned": code}), target=llvm_target())["turned"]
    x = (100 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    want = x.transpose(axes)
    # stores past the caches are of whole lines: another address goes through them
    room = np.zeros(want.size + 64, dtype)
    first = (-room.ctypes.data % 64) // room.itemsize + shift
    out = room[first : first + want.size].reshape(want.shape)
    run(tvm.runtime.tensor(x), tvm_ffi.from_dlpack(out))
    np.testing.assert_array_equal(out, want)
    assert not room[:first].any() and not room[first + want.size :].any()


def test_tiles_stay_as_they_are_where_no_store_bypasses_the_caches() -> None:
    """Of an AArch64: what goes through the caches gains nothing by narrow tiles."""
    figures = dict(SMALL.figures.items()) | {"machine": "aarch64"}
    other = HardwareModel("small", "cpu", 4, 1, SMALL.reg_bytes, 0, SMALL.vector_bytes, figures)
    made = from_relax(lambda x: op.permute_dims(x, [0, 2, 3, 1]), [(2, 64, 16, 32)], lambda *_: None)
    tiles = []
    for hw in (SMALL, other):
        graph = extracted(apply_default(made.func.with_attr("global_symbol", "turned"), hw), hw)
        (cols,) = {int(iop.target.cols) for iop, _ in graph.walk()}
        tiles.append(cols)
    assert tiles == [16, 64]


@pytest.mark.parametrize(
    ("shape", "axes", "dtype", "columns"),
    [
        ((2, 64, 16, 32), (0, 2, 3, 1), "float32", 16),  # rows of the result are 256 bytes apart
        ((2, 128, 16, 32), (0, 2, 3, 1), "float32", 16),  # 512
        ((1024, 256), (1, 0), "float32", 16),  # 4096
        ((2048, 256), (1, 0), "float32", 64),  # 8192
        ((2080, 256), (1, 0), "float32", 16),  # 8320, no multiple of 512
        ((2, 64, 16, 32), (0, 2, 3, 1), "float16", 64),  # a line is of 32 rows of the operand
        ((1024, 256), (1, 0), "float64", 64),  # 8192, of lines of 8 rows
        ((512, 256), (1, 0), "float64", 8),  # 4096
    ],
)
def test_vectors_of_whole_lines_walk_few_rows_of_the_operand(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, columns: int
) -> None:
    """Tiles of a line's columns, where rows of the result lie a page apart at most or share no places."""
    wide = HardwareModel("wide", "cpu", 4, 1, SMALL.reg_bytes, 0, 64, SMALL.figures)
    made = from_relax(lambda x: op.permute_dims(x, list(axes)), [shape], lambda *_: None, dtypes=[dtype])
    graph = extracted(apply_default(made.func.with_attr("global_symbol", "turned"), wide), wide)
    assert {int(iop.target.cols) for iop, _ in graph.walk()} == {columns}
    x = (100 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    want = x.transpose(axes)
    np.testing.assert_array_equal(interpreter.run(graph, x)[0].reshape(want.shape), want)
