# SPDX-License-Identifier: Apache-2.0
"""How large integers may be that a function takes for indices."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import tirx
from tvm.relax import op
from tvm.script import tirx as T
from uir_tvm import pipeline
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target import registry
from uir_tvm.tune.reference_results import reference_of
from uir_tvm.verify import equivalent
from uir_tvm.verify.cases import HIGHEST_INTEGER
from uir_tvm.verify.index_limits import index_limits


def lookup(rows: int) -> tirx.PrimFunc:
    """Rows of a table."""
    shapes = [(rows, 3), (40, 9)]
    made = from_relax(
        lambda table, ids: op.take(table, ids, axis=0), shapes, lambda *_: None, dtypes=["float32", "int64"]
    )
    return made.func


def test_an_index_is_below_what_it_indexes() -> None:
    (limit,) = index_limits(lookup(500)).values()
    assert limit == 500


def test_indices_that_are_computed_stay_small() -> None:
    """What becomes of them on the way is not known; what is only cast is."""

    @T.prim_func(s_tir=True)
    def main(
        table: T.Buffer((100,), "float32"),
        near: T.Buffer((8,), "int64"),
        far: T.Buffer((8,), "int32"),
        out: T.Buffer((8,), "float32"),
    ) -> None:
        shifted = T.alloc_buffer((8,), "int64")
        for i in range(8):
            with T.sblock("shift"):
                vi = T.axis.spatial(8, i)
                shifted[vi] = near[vi] + T.int64(90)
        for i in range(8):
            with T.sblock("out"):
                vi = T.axis.spatial(8, i)
                out[vi] = table[shifted[vi]] + table[T.Cast("int64", far[vi])]

    assert index_limits(main) == {"near": HIGHEST_INTEGER, "far": 100}
    found = reference_of(str(tvm.ir.save_json(main)), 0)
    ((table, near, far, out),) = found.results
    np.testing.assert_array_equal(out, table[near + 90] + table[far])


@pytest.mark.parametrize("rows", [1, 2])
def test_tables_of_few_rows_are_compared(rows: int) -> None:
    """Neither side reads beside the table, whatever the inputs are drawn by."""
    func = lookup(rows)
    graph = pipeline.compile_kernel(func, registry.resolve("uir-cpu").target, "lookup").igraph
    assert graph is not None
    for seed in range(3):
        assert equivalent(func, graph, seed=seed).methods == ("field", "values")
