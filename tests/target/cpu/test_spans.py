# SPDX-License-Identifier: Apache-2.0
"""Columns that need not exist are loaded under masks, in the vectors that all columns are made in."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.target.cpu.lower import lower
from uir_tvm.target.cpu.processors import has_avx512
from uir_tvm.target.cpu.short_columns import MOST_LOADS

from .support import HOST, check, parsed, signature

WIDE = pytest.mark.skipif(not has_avx512(HOST), reason="masks are those of AVX-512")


def pooled(cols: int, step: int = 1, dtype: str = "fp32", op: str = "max", role: str = "in") -> IGraph:
    """The greatest of 3 rows, of columns ``step`` apart of which the first is left of the tensor."""
    pitch = step * cols + 3
    pad = {"max": "-inf" if dtype.startswith("fp") else "-100", "add": "0"}[op]
    tile, row = f"(3,{cols}); ({cols},1)", f"(1,{cols}); ({cols},1)"
    at = f"{2 * pitch}*i + {4 * pitch}*pid - {pitch + 1}"
    bounds = f"rows -2*i - 4*pid + 1:; cols 1:{cols - 1}"
    return parsed(
        f"x = iPointer(dram, {dtype}, {8 * pitch}, {role})\no = iPointer(dram, {dtype}, {4 * cols}, out)\n"
        f"t = iPointer(reg, {dtype}, {3 * cols})\nm = iPointer(reg, {dtype}, {cols})",
        "for i in 2 {\n"
        f"move.dram.reg.{dtype} t[0; {tile}], x[{at}; (3,{cols}); ({pitch},{step}); {bounds}] [pad={pad}]\n"
        f"reduce.{op}.col.unit.{dtype} m[0; (1,{cols}); (1,1)], t[0; {tile}]\n"
        f"move.reg.dram.{dtype} o[{cols}*i + {2 * cols}*pid; {row}], m[0; {row}]\n"
        "}",
        2,
    )


def on_avx512(graph: IGraph, mcpu: str = "sapphirerapids") -> IGraph:
    """The graph for a processor with vectors of a line."""
    figures = dict(HOST.figures.items()) | {"vector_registers": 32, "line_bytes": 64, "mcpu": mcpu}
    figures |= {"machine": "x86_64", "mattr": ""}
    return graph.replace(hardware=HardwareModel("wide", "cpu", 2, 1, HOST.reg_bytes, 0, 64, figures))


@pytest.mark.parametrize(
    ("graph", "masked"),
    [
        (pooled(40), True),
        (pooled(40, 2), True),
        (pooled(40, 3), False),
        (pooled(40, 2, role="inout"), False),  # others may write what lies between
        (pooled(40, dtype="fp16"), False),  # memory has another type than what is computed with
        (pooled(8), False),  # less than a vector
    ],
    ids=["steps of one", "of two", "of three", "what others write", "halves", "short"],
)
def test_which_columns_are_loaded_under_masks(graph: IGraph, masked: bool) -> None:
    graph = on_avx512(graph)
    assert ("uir_load_span" in str(lower(graph, signature(graph)))) == masked


def test_no_masks_without_avx512() -> None:
    graph = on_avx512(pooled(40), "haswell")
    assert "uir_load_span" not in str(lower(graph, signature(graph)))


@WIDE
@pytest.mark.parametrize("op", ["max", "add"])
@pytest.mark.parametrize("dtype", ["fp32", "fp64", "int32"])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("cols", [16, 17, 40, 63])
def test_results_are_those_of_the_graph(cols: int, step: int, dtype: str, op: str) -> None:
    kind = np.dtype({"fp32": "f4", "fp64": "f8", "int32": "i4"}[dtype])
    x = np.random.default_rng(0).integers(-99, 100, 8 * (step * cols + 3)).astype(kind)
    check(pooled(cols, step, dtype, op), [x])


def test_what_ends_with_parts_of_vectors_is_loaded_by_these() -> None:
    """No whole vector over them: a processor makes none of several stores before they are in the cache."""
    cols, row = 40, "(1,40); (40,1)"
    rows = MOST_LOADS + 1  # fewer stay in registers
    tile = f"({rows},{cols}); ({cols},1)"
    graph = parsed(
        f"x = iPointer(dram, fp32, {2 * rows * cols}, in)\no = iPointer(dram, fp32, {2 * cols}, out)\n"
        f"m = iPointer(reg, fp32, {cols})",
        f"""reduce.max.col.unit.fp32 m[0; (1,{cols}); (1,1)], x[{rows * cols}*pid; {tile}]
        unary.muls.fp32 o[{cols}*pid; {row}], m[0; {row}] [0.5]""",
        2,
    )
    lines = str(lower(on_avx512(graph), signature(graph))).splitlines()
    stores = [
        line for line in lines if "o_flat[" in line and " = T.Broadcast" not in line and "decl" not in line
    ]
    assert any("T.int64(8)]" in line for line in stores), "the last eight columns are made by themselves"
    check(graph, [np.random.default_rng(0).standard_normal(2 * rows * cols).astype(np.float32)])
