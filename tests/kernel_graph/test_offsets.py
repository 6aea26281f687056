# SPDX-License-Identifier: Apache-2.0
"""Parameters of TVM's own kernels start where their memory does."""

from __future__ import annotations

import numpy as np
from tvm import relax, tirx
from uir_tvm.kernel_graph import build, legalize

from .programs import module, run_graph

op = relax.op
X = np.random.default_rng(3).permutation(21).reshape(3, 7).astype("float32")


def test_no_parameter_of_a_sort_has_an_offset_of_its_own() -> None:
    made = legalize.legalize(module({"x": (X.shape, "float32")}, lambda emit, x: emit(op.sort(x, -1))))
    buffers = [param for f in made.functions.values() if isinstance(f, tirx.PrimFunc) for param in f.params]
    assert buffers and all(isinstance(buffer.ty.elem_offset, tirx.IntImm) for buffer in buffers)


def test_a_result_of_a_kernel_that_nobody_reads_is_a_buffer_within() -> None:
    """Merged with its kernel, its offset would be bound by nobody."""
    spec = {"x": ((1, 6, 4), "float32"), "s": ((1, 2, 6), "float32")}
    rng = np.random.default_rng(4)
    boxes, scores = rng.random((1, 6, 4), "float32"), rng.random((1, 2, 6), "float32")

    def body(emit, x, s):
        limits = (relax.const(3, "int64"), relax.const(0.5, "float32"), relax.const(0.1, "float32"))
        found = op.vision.all_class_non_max_suppression(x, s, *limits, output_format="tensorflow")
        return emit(op.strided_slice(emit(relax.TupleGetItem(emit(found), 1)), [1], [0], [1]))

    (best,) = run_graph(build(module(spec, body)), [boxes, scores])
    np.testing.assert_array_equal(best, scores[:, 0].max(keepdims=True).reshape(1, 1))
