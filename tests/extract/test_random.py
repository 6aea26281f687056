# SPDX-License-Identifier: Apache-2.0
"""Random functions of ragged shapes in random tiles give what TVM's own lowering gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx

from tests.asked import asked

from .compare import check
from .schedules import map_rows, prim

F32 = "float32"
TEMPLATES = {
    "broadcast": lambda a, b: te.compute(a.shape, lambda i, j: te.exp(a[i, j]) * b[j] + a[i, 0], "out"),
    "transposed": lambda a, b: te.compute(
        (a.shape[1], a.shape[0]), lambda i, j: a[j, i] - tirx.max(b[i], 0.5), "out"
    ),
    "shifted": lambda a, b: te.compute(
        a.shape, lambda i, j: tirx.if_then_else(tirx.all(i >= 1, j >= 2), a[i - 1, j - 2], b[j]), "out"
    ),
    "flipped": lambda a, b: te.compute(
        a.shape, lambda i, j: a[a.shape[0] - 1 - i, j] + a[i, a.shape[1] - 1 - j], "out"
    ),
    "masked": lambda a, b: te.compute(
        a.shape, lambda i, j: tirx.Select(i + 2 >= j, a[i, j], b[j] - 1.0), "out"
    ),
    "strided": lambda a, b: te.compute(
        ((a.shape[0] + 1) // 2, (a.shape[1] + 2) // 3), lambda i, j: a[i * 2, j * 3] + b[j * 3], "out"
    ),
}


@settings(max_examples=asked(12, 100), deadline=None)
@given(
    st.sampled_from(sorted(TEMPLATES)),
    st.integers(1, 23),
    st.integers(1, 29),
    st.integers(1, 4),
    st.integers(1, 6),
    st.one_of(st.none(), st.integers(1, 12)),
    st.booleans(),
)
def test_random_tiles(name, rows, cols, units, tile_rows, tile_cols, fuse):
    """Any number of units and any tile, fused or not, over any shape."""
    func = prim(TEMPLATES[name], ((rows, cols), F32), ((cols,), F32))
    scheduled = map_rows(func, "out", units, tile_rows, None if fuse else tile_cols, fuse=2 if fuse else 1)
    check(func, scheduled)


@settings(max_examples=asked(8, 60), deadline=None)
@given(
    st.integers(1, 19), st.integers(1, 40), st.integers(1, 3), st.integers(1, 5), st.sampled_from([0, 1]),
    st.sampled_from([te.sum, te.max, te.min]),
)  # fmt: skip
def test_random_reductions(rows, cols, units, tile, axis, op):
    """Rows or columns reduced after an elementwise producer, with the kept axis over units."""

    def build(a):
        k = te.reduce_axis((0, a.shape[axis]), "k")
        square = te.compute(a.shape, lambda i, j: a[i, j] * a[i, j] - 0.5, "square")
        kept = a.shape[1 - axis]
        return te.compute((kept,), lambda i: op(square[i, k] if axis == 1 else square[k, i], axis=k), "out")

    func = prim(build, ((rows, cols), F32))
    check(func)
    check(func, map_rows(func, "out", units, tile, local=("square",)))
