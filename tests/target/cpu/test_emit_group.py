# SPDX-License-Identifier: Apache-2.0
"""The last columns of rows whose length a size decides: under a mask, or with some before them once more."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import tirx
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.target.cpu import first_lanes
from uir_tvm.target.cpu.lower import lower

from .support import HOST, llvm_target

ROWS, LONGEST = 4, 64


def sums(result: str) -> tirx.PrimFunc:
    """Sums of rows of x and y, into ``result``: z, or y itself."""
    tile, row = f"({ROWS},{LONGEST}); ({LONGEST},1); cols :s", f"({ROWS},{LONGEST}); (s,1); cols :s"
    pointers = [("x", "in"), ("y", "inout" if result == "y" else "in")] + [("z", "out")] * (result == "z")
    graph = parse_igraph(
        f"igraph kernel on host parallel (1, 1) {{\nsize s = [1, {LONGEST}]\n"
        + "".join(f"{name} = iPointer(dram, fp32, ({ROWS}, s), {role})\n" for name, role in pointers)
        + "".join(f"{name} = iPointer(reg, fp32, {ROWS * LONGEST})\n" for name in "abc")
        + f"""move.dram.reg.fp32 a[0; {tile}], x[0; {row}]
        move.dram.reg.fp32 b[0; {tile}], y[0; {row}]
        binary.add.fp32 c[0; {tile}], a[0; {tile}], b[0; {tile}]
        move.reg.dram.fp32 {result}[0; {row}], c[0; {tile}]
        }}""",
        HOST,
    )
    s = tirx.Var("s", "int64")
    params = [tirx.decl_buffer((ROWS, s), "float32", name=name) for name, _ in pointers]
    empty = tirx.PrimFunc(params, tirx.Evaluate(tirx.const(0, "int32")))
    return lower(graph, empty.with_attr({"global_symbol": "kernel", "tirx.noalias": True}))


@pytest.mark.parametrize("result", ["z", "y"])
def test_rows_of_all_lengths(result: str) -> None:
    """What a row adds to itself it adds once: there no column is made twice."""
    code = sums(result)
    run = tvm.compile(tvm.IRModule({"kernel": code}), target=llvm_target())["kernel"]
    rng = np.random.default_rng(0)
    for s in (1, 15, 16, 17, 37, 48, 63, 64):
        x, y = (rng.standard_normal((ROWS, s)).astype("float32") for _ in range(2))
        tensors = [tvm.runtime.tensor(a) for a in (x, y, np.zeros_like(x))][: 3 if result == "z" else 2]
        run(*tensors)
        np.testing.assert_array_equal(tensors[-1].numpy(), x + y)


@pytest.mark.skipif(not first_lanes.masked_bytes(HOST), reason="this processor moves nothing under masks")
def test_only_short_rows_end_under_masks_where_columns_may_be_made_twice() -> None:
    """A mask costs more than a whole vector: of the result's rows only those without one are stored so."""
    again, once = (str(sums(result)).split("uir_store_first")[0] for result in "zy")
    assert again.count("else:") == once.count("else:") + 1
