# SPDX-License-Identifier: Apache-2.0
"""Rows of open length are reduced eight neighbours at a time, the end under a mask: no zeros beneath."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording

#: The greatest number of rows and of columns -> columns around repeats of 64, and around blocks of 8.
MOST = {
    (8, 512): (1, 7, 8, 63, 64, 65, 129, 449, 511, 512),
    (2, 3000): (1, 64, 511, 513, 2049, 3000),  # few rows: the repeats of one follow each other, in two stages
    (300, 70): (1, 9, 64, 65, 70),  # more rows than repeats of a call
}
REDUCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Sum": (topi.sum, np.sum),
    "Max": (topi.max, np.max),
}


@functools.cache
def built(name: str, rows: int, cols: int) -> tuple[tvm.runtime.Module, str]:
    """A reduction of (n, s), n up to `rows` and s up to `cols`, and its text."""
    x = te.placeholder((tirx.Var("n", "int64"), tirx.Var("s", "int64")), "float32", name="x")
    func = te.create_prim_func([x, REDUCTIONS[name][0](x, 1)])
    func = with_sizes(func, {"n": Size("n", 0, rows), "s": Size("s", 0, cols)})
    with recording(CompileOptions(variants="none")) as records:
        module = tvm.tirx.build(tvm.IRModule({"main": func}), target="uir-ascend")["main"]
    return module, str(records["main"].products["source"].source)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize(("rows", "cols"), MOST)
def test_every_element_of_a_row_counts_and_nothing_behind_it(name: str, rows: int, cols: int) -> None:
    """Whole numbers, so that sums are exact in any order; the model faults reads of what nobody wrote."""
    module, text = built(name, rows, cols)
    assert f"BlockReduce{name}(" in text, text
    assert re.search(r"\b(Add|Max|Duplicate<float>)\(work", text) is None, text
    for length in MOST[rows, cols]:
        for n in (1, rows):
            given = np.random.default_rng(length).integers(-90, -1, (n, length)).astype("float32")
            tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (given, np.full(n, 7, "float32"))]
            module(*tensors)
            np.testing.assert_array_equal(tensors[1].numpy(), REDUCTIONS[name][1](given, 1))


def test_of_no_columns_the_sum_is_nothing() -> None:
    module, _ = built("Sum", 8, 512)
    tensors = [
        tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (np.zeros((5, 0), "float32"), np.ones(5, "float32"))
    ]
    module(*tensors)
    np.testing.assert_array_equal(tensors[1].numpy(), np.zeros(5, "float32"))
