# SPDX-License-Identifier: Apache-2.0
"""Rows whose length a size decides are shared by the units of a group, in one chunk or in several."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording

#: Target, greatest length, units of a row; lengths of nothing, within one unit's part, and in all parts.
CASES = [
    ("uir-cuda", 4096, 8, (0, 1, 511, 513, 4096)),
    ("uir-cuda", 40000, 16, (0, 1500, 16385, 40000)),  # several chunks
    ("uir-bang", 4096, 4, (0, 1, 1025, 4096)),
]


@pytest.mark.parametrize(("target", "most", "units", "lengths"), CASES)
def test_softmax_of_rows_that_units_share(
    target: str, most: int, units: int, lengths: tuple[int, ...]
) -> None:
    """The results of parts that have no column count nothing."""
    x = te.placeholder((2, tirx.Var("n", "int64")), "float32", name="x")
    func = with_sizes(te.create_prim_func([x, topi.nn.softmax(x, 1)]), {"n": Size("n", 0, most)})
    with recording(CompileOptions(variants="none", database=None, faults="raise")) as records:
        module = tvm.tirx.build(tvm.IRModule({"main": func}), target=target)["main"]
    record = records["main"]
    assert record.recipe == "normalization"
    graph = str(record.products["igraph"])
    assert re.search(rf"parallel \(2, {units}\)", graph) and f"group_size={units}" in graph
    for length in lengths:
        given = np.random.default_rng(length).standard_normal((2, length)).astype("float32")
        tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (given, np.full_like(given, 7))]
        module(*tensors)
        powers = np.exp(given.astype("float64") - given.max(1, initial=-9, keepdims=True))
        wanted = powers / powers.sum(1, keepdims=True)
        np.testing.assert_allclose(tensors[1].numpy(), wanted, rtol=1e-5, atol=1e-9)
