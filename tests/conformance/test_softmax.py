# SPDX-License-Identifier: Apache-2.0
"""Softmax over ragged rows has a kernel on every target, on more than one unit, and is right."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import uir_tvm
from tvm.relax import op
from uir_tvm.igraph import interpreter, parse_igraph
from uir_tvm.options import CompileOptions
from uir_tvm.schedules import fallback
from uir_tvm.target.registry import TARGETS

from tests.asked import asked, every_two

from ..kernel_graph.programs import module

#: Rows and columns: no power of two, fewer than a block, one row, rows that no unit holds.
SHAPES = [(37, 100), (5, 7), (1, 33), (129, 1000), (3, 65537)]
#: Relative error of a weight: sums of fp32 in any order, then one rounding to the dtype.
ERRORS = {"float32": 4e-6, "float16": 2.0**-11 * 1.01, "bfloat16": 2.0**-8 * 1.01}
#: Half of the least difference of two numbers of a dtype; the host model of a GPU computes e^x to 2^-126.
LEAST = {"float32": 2.0**-125, "float16": 2.0**-25, "bfloat16": 2.0**-125}
#: Any two of a target, a shape and a dtype; all three with ``UIR_TEST_ALL=1``.
CASES = [
    pytest.param(target, shape, dtype, id=f"{target}-{shape[0]}x{shape[1]}-{dtype}")
    for target, shape, dtype in every_two(TARGETS, SHAPES, asked(list(ERRORS)[:2], list(ERRORS)))
]


@pytest.mark.compares_itself
@pytest.mark.parametrize(("target", "shape", "dtype"), CASES)
def test_ragged_rows(target: str, shape: tuple[int, int], dtype: str) -> None:
    """The kernel of the recipe, not the host's and not that of one unit; NumPy and the interpreter agree."""

    def body(emit: Any, x: Any) -> Any:
        return emit(op.nn.softmax(x, -1))

    options = CompileOptions(device="cpu" if target == "uir-cpu" else "model")
    exe = uir_tvm.compile(module({"x": (shape, dtype)}, body), target=target, options=options)
    (kernel,) = exe.info.kernels
    assert not kernel.fallback, kernel.fallback
    assert kernel.recipe not in ("", fallback.RECIPE.hero)

    generator = np.random.default_rng(sum(shape))
    narrow = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = generator.normal(0, 3, shape).astype(narrow)
    exact = x.astype(np.float64)
    weights = np.exp(exact - exact.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True)
    got = np.asarray(exe(x))
    assert got.dtype == narrow
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=ERRORS[dtype], atol=LEAST[dtype])
    (meant,) = interpreter.run(parse_igraph(kernel.texts["igraph"]), x)
    np.testing.assert_allclose(
        np.asarray(meant).reshape(shape).astype(np.float64),
        got.astype(np.float64),
        rtol=2 * ERRORS[dtype],
        atol=2 * LEAST[dtype],
    )
