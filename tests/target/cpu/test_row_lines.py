# SPDX-License-Identifier: Apache-2.0
"""Rows that share lines of a large result are stored past the caches by whole lines, from registers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm_ffi
from tvm import te, tirx
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu.lower import lower
from uir_tvm.target.cpu.processors import has_avx512
from uir_tvm.target.cpu.row_lines import shared_line

from tests.extracted import extracted

from .support import HOST, compiled, parsed, signature

WIDE = pytest.mark.skipif(not has_avx512(HOST), reason="lines are put together in registers of AVX-512")
ROWS, UNITS = 7, 2


def padded(cols: int, dtype: str = "fp32", source_rows: int = 5, hint: str = "[hint=stream]") -> IGraph:
    """Rows of ``cols``, the first and the last two columns and all but some rows of them 7."""
    tile, inner, tiles = f"({ROWS},{cols})", cols - 3, 3
    read, made, whole = source_rows * inner, ROWS * cols, f"({ROWS},{cols}); ({cols},1)"
    bounds = f"rows 1:{source_rows + 1}; cols 1:{inner + 1}"
    return parsed(
        f"x = iPointer(dram, {dtype}, {UNITS * tiles * read}, in)\n"
        f"o = iPointer(dram, {dtype}, {UNITS * tiles * made}, out)\n"
        f"t = iPointer(reg, {dtype}, {made})",
        f"for i in {tiles} {{\n"
        f"move.dram.reg.{dtype} t[0; {whole}], "
        f"x[{read}*i + {tiles * read}*pid - {inner + 1}; {tile}; ({inner},1); {bounds}] [pad=7.0]\n"
        f"move.reg.dram.{dtype} o[{made}*i + {tiles * made}*pid; {whole}], t[0; {whole}] {hint}\n"
        "}",
        UNITS,
    )


def wanted(x: np.ndarray, cols: int, source_rows: int = 5) -> np.ndarray:
    """What `padded` makes."""
    parts = x.reshape(-1, source_rows, cols - 3)
    return np.pad(parts, ((0, 0), (1, ROWS - 1 - source_rows), (1, 2)), constant_values=7).reshape(-1)


def on_avx512(graph: IGraph, last_cache: int = 1 << 30) -> IGraph:
    """The graph for a processor with vectors of a line."""
    figures = dict(HOST.figures.items()) | {"l3_bytes": last_cache, "vector_registers": 32, "line_bytes": 64}
    figures |= {"mcpu": "sapphirerapids", "machine": "x86_64", "mattr": ""}
    return graph.replace(hardware=HardwareModel("wide", "cpu", 2, 1, HOST.reg_bytes, 0, 64, figures))


@pytest.mark.parametrize(
    ("graph", "by_lines"),
    [
        (padded(50), True),
        (padded(50, hint=""), False),  # the caches hold it
        (padded(20), False),  # a line may have columns of three rows
        (padded(50, "int8"), False),  # rows are less than a vector
    ],
    ids=["shared lines", "small", "short rows", "bytes"],
)
def test_which_rows_are_stored_by_lines(graph: IGraph, by_lines: bool) -> None:
    graph = on_avx512(graph)
    text = str(lower(graph, signature(graph)))
    assert ("uir_load_span" in text and "uir_stream" in text) == by_lines
    assert not shared_line(64, 16), "rows are whole lines"
    assert not by_lines or "t = T.alloc_buffer" not in text, "the tile is put together in memory"


def test_lines_inside_a_row_are_loaded_without_masks() -> None:
    """Those at the ends of its rows, and rows of nothing but padding, have masks."""
    graph = on_avx512(padded(50))
    text = str(lower(graph, signature(graph)))
    assert re.search(r"= x\w*\[T\.Ramp\(", text) is not None
    assert text.count("uir_load_span") > 2


@WIDE
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "int32", "fp16"])
@pytest.mark.parametrize("cols", [35, 50, 130])
def test_lines_are_those_of_the_rows(dtype: str, cols: int) -> None:
    """Wherever the result begins; what lies around it stays as it was."""
    module = compiled(padded(cols, dtype))
    kind = np.dtype({"fp64": "f8", "fp32": "f4", "fp16": "f2", "int32": "i4"}[dtype])
    x = np.random.default_rng(0).integers(1, 100, UNITS * 3 * 5 * (cols - 3)).astype(kind)
    made = wanted(x, cols)
    for shift in (0, 1, 5, 15):
        room = np.zeros(made.size + 128, kind)
        start = (-room.ctypes.data // kind.itemsize) % (64 // kind.itemsize) + shift
        o = room[start : start + made.size]
        module["kernel"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o))
        np.testing.assert_array_equal(o, made)
        assert not room[:start].any() and not room[start + made.size :].any()


@WIDE
def test_rows_are_computed_with_what_there_is_one_of_for_each() -> None:
    """A line of two rows has the operand of each."""
    cols, rows = 37, 11
    whole = f"({rows},{cols}); ({cols},1)"
    graph = parsed(
        f"x = iPointer(dram, fp32, {rows * 40}, in)\nb = iPointer(dram, fp32, {rows}, in)\n"
        f"o = iPointer(dram, fp32, {rows * cols}, out)\n"
        + "".join(f"{name} = iPointer(reg, fp32, {rows * cols})\n" for name in "aes"),
        f"""move.dram.reg.fp32 a[0; {whole}], x[1; ({rows},{cols}); (40,1)]
        broadcast.row.unit.fp32 e[0; {whole}], b[0; ({rows},1); (1,1)]
        binary.add.fp32 s[0; {whole}], a[0; {whole}], e[0; {whole}]
        move.reg.dram.fp32 o[0; {whole}], s[0; {whole}] [hint=stream]""",
    )
    assert "uir_load_span" in str(lower(graph, signature(graph)))
    rng = np.random.default_rng(0)
    x, b = rng.standard_normal((rows, 40)).astype("f4"), rng.standard_normal((rows, 1)).astype("f4")
    o = np.zeros((rows, cols), np.float32)
    compiled(graph)["kernel"](*map(tvm_ffi.from_dlpack, (x.reshape(-1), b.reshape(-1), o.reshape(-1))))
    np.testing.assert_array_equal(o, x[:, 1 : 1 + cols] + b)


def exceeds_first_cache(function: tirx.PrimFunc) -> bool:
    """Whether a tile of the default schedule does."""
    hw = hardware.get("avx512-2core")
    graph = extracted(apply_default(function, hw), hw)
    tile = max(int(iop.target.rows * iop.target.cols) for iop, _ in graph.walk())
    return 4 * tile > int(hw.figures["tile_bytes"])


@pytest.mark.parametrize(
    ("columns", "count", "longer"),
    [(126, 4096, True), (128, 4096, False), (126, 16, False)],
    ids=["shared lines", "whole lines", "small"],
)
def test_tiles_of_shared_lines_have_more_rows(columns: int, count: int, longer: bool) -> None:
    """What two tiles share costs more than what a core's first cache does not hold."""
    x = te.placeholder((count, 126, 160), name="x")
    y = te.compute((count, 126, columns), lambda i, j, k: x[i, j, k + 1] * 2.0, name="y")
    assert exceeds_first_cache(te.create_prim_func([x, y])) == longer


def test_tiles_of_pieces_have_no_more_rows() -> None:
    """They are put together in the first cache."""
    x, y = te.placeholder((80000, 100), name="x"), te.placeholder((80000, 30), name="y")
    both = te.compute(
        (80000, 130), lambda i, j: tirx.if_then_else(j < 100, x[i, tirx.min(j, 99)], y[i, j - 100]), name="z"
    )
    assert not exceeds_first_cache(te.create_prim_func([x, y, both]))
