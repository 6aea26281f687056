# SPDX-License-Identifier: Apache-2.0
"""Operators with strides that are products of sizes, on every target: right at every size."""

from __future__ import annotations

import os

import numpy as np
import pytest
import tvm
from tvm import te, tirx, topi
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.target.registry import TARGETS

from tests.asked import in_turn
from tests.open_functions import FEW, INNER, KEYS, LED, LONGEST, ROUNDED, kernel_of, normalized, run_at

ALL = bool(os.environ.get("UIR_TEST_ALL"))
#: Lengths of rows, by the greatest: one, two, around tiles, primes, the greatest; fewer on host models.
LENGTHS = {
    LONGEST: (1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 257, LONGEST),
    FEW: (1, 2, 7, 8, 9, 15, 16, 17, FEW),
    KEYS: (1, 2, 31, 32, 33, 65, KEYS),
}
QUICK = {LONGEST: (1, 67, LONGEST), FEW: (1, FEW), KEYS: (33, KEYS)}
#: What host models run only where all is asked; the graphs of all targets are tested by tests/extract.
LONG = ("softmax of masked scores", "layer norm of open rows", "attention")
#: Targets without kernels of attention for all sizes that are held to every bit: sums that go on are rounded
#: once more where the cube core makes each product by itself.
WITHOUT = ("uir-ascend",)
#: Each function on the CPU, and on one device in turn; on all with ``UIR_TEST_ALL=1``.
CASES = in_turn(
    INNER,
    TARGETS,
    may=lambda name, target: (
        (ALL or target == "uir-cpu" or name not in LONG) and not (target in WITHOUT and name in ROUNDED)
    ),
)
#: How many rows, or batches, there are beside them, in turn.
ROWS = (1, 2, 3, 5)


@pytest.mark.compares_itself
@pytest.mark.parametrize(("name", "target"), CASES)
def test_one_kernel_for_all_sizes(name: str, target: str) -> None:
    function = INNER[name]
    kernel = kernel_of(function.func(), target)
    outer, inner = function.sizes
    _, longest = function.ranges[inner]
    lengths = LENGTHS if ALL or target == "uir-cpu" else QUICK
    for turn, length in enumerate(lengths[longest]):
        sizes = {outer: ROWS[turn % len(ROWS)], inner: length}
        inputs = function.inputs(sizes)
        found, want = run_at(kernel, inputs, function.reference(*inputs), target)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4, err_msg=str(sizes))


@pytest.mark.compares_itself
@pytest.mark.parametrize(("name", "target"), in_turn(LED, TARGETS))
def test_closed_dimensions_may_lead(name: str, target: str) -> None:
    """Many units share the rows, though what is outside of the open dimension is a number."""
    function = LED[name]
    kernel = kernel_of(function.func(), target, recipe=function.hero)
    for length in LENGTHS[LONGEST] if ALL or target == "uir-cpu" else (1, 9, 67):
        inputs = function.inputs({"s": length})
        found, want = run_at(kernel, inputs, function.reference(*inputs), target)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4, err_msg=str(length))


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", TARGETS)
def test_what_a_row_is_normalized_from_may_be_a_result_too(target: str) -> None:
    """Both results share the units' loops over batches and rows, which both are open."""
    b, s = tirx.Var("b", "int64"), tirx.Var("s", "int64")
    x, y = te.placeholder((b, s, 24), name="x"), te.placeholder((s, 24), name="y")
    gain, shift = te.placeholder((24,), name="gain"), te.placeholder((24,), name="shift")
    total = te.compute(x.shape, lambda i, j, k: x[i, j, k] + y[j, k], "total")
    func = te.create_prim_func([x, y, gain, shift, total, topi.nn.layer_norm(total, gain, shift, [2], 1e-5)])
    func = with_sizes(func, {"b": Size("b", 1, 4096), "s": Size("s", 1, FEW)})
    kernel = kernel_of(func, target, recipe="normalization")
    device = tvm.cpu() if target == "uir-cpu" else tvm.ext_dev(0)
    rng = np.random.default_rng(3)
    for batch, length in ((1, 1), (3, 7), (2, FEW)):
        shapes = [(batch, length, 24), (length, 24), (24,), (24,)]
        given = [rng.uniform(-2, 2, shape).astype("float32") for shape in shapes]
        results = [tvm.runtime.tensor(np.full(shapes[0], np.nan, "float32"), device) for _ in range(2)]
        kernel(*(tvm.runtime.tensor(each, device) for each in given), *results)
        want = given[0] + given[1]
        np.testing.assert_array_equal(results[0].numpy(), want)
        np.testing.assert_allclose(results[1].numpy(), normalized(want, *given[2:]), rtol=1e-4, atol=1e-4)
