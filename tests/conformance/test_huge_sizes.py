# SPDX-License-Identifier: Apache-2.0
"""Sizes whose elements leave 31 and 63 bits, on every target: a kernel, or a refusal before it runs."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from uir_tvm import CompileOptions
from uir_tvm.errors import SizeError, UirError
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording
from uir_tvm.target.registry import TARGETS

from tests.open_functions import kernel_of, run_at


def doubled(high: int) -> tirx.PrimFunc:
    """Rows of 24, at least one of them, up to ``high``."""
    rows = tirx.Var("rows", "int64")
    x = te.placeholder((rows, 24), name="x")
    func = te.create_prim_func([x, te.compute((rows, 24), lambda i, j: x[i, j] * 2.0, "y")])
    return with_sizes(func, {"rows": Size("rows", 1, high)})


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", TARGETS)
def test_elements_beyond_31_bits(target: str) -> None:
    """One kernel, right at small sizes; a size outside of its range is refused before it runs."""
    kernel = kernel_of(doubled(1 << 40), target)
    for rows in (1, 2, 67):
        x = np.arange(rows * 24, dtype="float32").reshape(rows, 24)
        np.testing.assert_array_equal(*run_at(kernel, [x], 2 * x, target))
    with pytest.raises(SizeError, match="rows"):
        run_at(kernel, [np.zeros((0, 24), "float32")], np.zeros((0, 24)), target)


@pytest.mark.parametrize("target", TARGETS)
def test_elements_beyond_63_bits(target: str) -> None:
    """No address says where they are: the compiler refuses the range, by type."""
    with recording(CompileOptions(faults="raise")) as records:
        tvm.build(tvm.IRModule({"main": doubled(1 << 60)}), target=target)
    (record,) = records.values()
    assert record.refusal is not None
    assert isinstance(record.refusal.error, UirError)
    assert "smaller upper bounds" in str(record.refusal.error)
