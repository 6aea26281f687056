# SPDX-License-Identifier: Apache-2.0
"""Products of many rows with a constant matrix, in tiles of our own, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from attrs import evolve
from uir_tvm.library import cpu, reference
from uir_tvm.library.cpu import MatmulAttrs, OperandLayout

Array = np.ndarray[Any, Any]

#: Relative to the largest sum: what models are held to.
TOLERANCE = 2e-6


@pytest.fixture(autouse=True)
def _has_panels() -> None:
    if cpu.describe(MatmulAttrs.contiguous((128, 64), (64, 256), packed=True))["plan"] != "panels":
        pytest.skip("this CPU's products of many rows are the library's")


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def packed(attrs: MatmulAttrs, b: Array) -> Any:
    return cpu.pack_weight(tvm.runtime.tensor(b), attrs)


def run(attrs: MatmulAttrs, a: Array, weight: Any, *more: Array, out: Array, plan: str = "panels") -> Array:
    """The buffer of the result after the call."""
    assert cpu.describe(attrs)["plan"] == plan
    result = tvm.runtime.tensor(out)
    operands = [tvm.runtime.tensor(each) for each in more]
    tvm_ffi.get_global_func(cpu.MATMUL)(tvm.runtime.tensor(a), weight, *operands, attrs.to_json(), result)
    return result.numpy()


def check(attrs: MatmulAttrs, a: Array, b: Array, out: Array, plan: str = "panels", **more: Array) -> None:
    got = run(attrs, a, packed(attrs, b), *more.values(), out=out, plan=plan)
    want = reference.matmul(attrs, a, b, **more, out=out)
    assert np.abs(got - want).max() <= TOLERANCE * np.abs(want).max()


def product(m: int, k: int, n: int, plan: str, **how: Any) -> None:
    """With a bias."""
    attrs = MatmulAttrs.contiguous((m, k), (k, n), packed=True, bias=True, **how)
    check(attrs, random(1, m, k), random(2, k, n), np.zeros((m, n), np.float32), plan, bias=random(3, n))


@pytest.mark.parametrize("k", [1, 3, 255, 700])
@pytest.mark.parametrize("n", [193, 200, 201, 250])
@pytest.mark.parametrize("m", [33, 50, 211])
def test_sizes(threads: int, m: int, n: int, k: int) -> None:
    """Rows that no tile and no block divides, last panels of two and three vectors, whole and not."""
    product(m, k, n, "panels")


@pytest.mark.parametrize("n", [2, 8, 17, 41])
def test_few_columns_and_what_tiles_do_not_compute(threads: int, n: int) -> None:
    """A factor; the only panel has one vector or three."""
    product(50, 300, n, "panels", alpha=0.5)


@pytest.mark.parametrize("m", [33, 50, 211, 600])
@pytest.mark.parametrize("n", [2, 10, 16, 41, 90])
def test_few_columns_are_tiles_of_rows_where_they_lie(threads: int, m: int, n: int) -> None:
    product(m, 70, n, "tiles", activation="silu")


def test_a_batch_of_rows_is_further_rows() -> None:
    """Of few columns, too: one band of rows, not one for each matrix of the batch."""
    k, n = 40, 20
    attrs = MatmulAttrs.contiguous((3, 30, k), (k, n), packed=True)
    check(attrs, random(1, 3, 30, k), random(2, k, n), np.zeros((3, 30, n), np.float32), "tiles")


@pytest.mark.parametrize("m", [40, 128, 211])
def test_sums_of_several_pieces(threads: int, m: int) -> None:
    """More products than the second cache holds numbers of the rows; the last piece is a shorter one."""
    k, n = 2050, 201
    attrs = MatmulAttrs.contiguous((m, k), (k, n), packed=True)
    assert cpu.describe(attrs)["pieces"] > 1
    product(m, k, n, "panels")


@pytest.mark.parametrize("activation", ["none", "relu", "clip(-20.0,15.0)", "silu"])
@pytest.mark.parametrize("residual", ["none", "before_activation", "after_activation"])
@pytest.mark.parametrize("n", [208, 201])
def test_results_at_the_end_of_a_tile(n: int, residual: str, activation: str) -> None:
    """Bounds follow sums in registers, functions and rests of vectors do not; NaN stays in its row."""
    m, k = 40, 24
    attrs = MatmulAttrs.contiguous(
        (m, k), (k, n), packed=True, bias=True, alpha=0.25, activation=activation, residual=residual
    )
    a, b, bias, added = random(1, m, k), random(2, k, n), random(3, n), random(4, m, n)
    a[3], b[:, 7] = np.nan, 40.0
    more = {"bias": bias} | ({"residual": added} if residual != "none" else {})
    out = np.full((m, n), 9, np.float32)
    got = run(attrs, a, packed(attrs, b), *more.values(), out=out)
    want = reference.matmul(attrs, a, b, **more, out=out)
    assert np.isnan(got[3]).all() and not np.isnan(np.delete(got, 3, 0)).any()
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("residual", ["before_activation", "after_activation"])
@pytest.mark.parametrize("activation", ["none", "gelu_erf", "gelu_tanh", "silu", "clip(-20.0,15.0)"])
def test_epilogues_of_several_pieces(activation: str, residual: str) -> None:
    """A residual is read where the sums of all pieces are done, and only there."""
    m, k, n = 40, 1500, 37
    attrs = MatmulAttrs.contiguous(
        (m, k), (k, n), packed=True, bias=True, alpha=0.25, activation=activation, residual=residual
    )
    more = {"bias": random(3, n), "residual": random(4, m, n)}
    check(attrs, random(1, m, k), random(2, k, n), np.full((m, n), 9, np.float32), **more)


def test_views(threads: int) -> None:
    """Rows that lie as columns, a result within a wider one, a batch of rows: nothing else is written."""
    m, k, n = 45, 300, 200
    turned = MatmulAttrs(
        m=m,
        n=n,
        k=k,
        a=OperandLayout((1, m), 7),
        b=OperandLayout((1, k), 0),
        out=OperandLayout((n + 9, 1), 4),
        packed=True,
    )
    out = random(5, m * (n + 9) + 4)
    check(turned, random(1, m * k + 7), random(2, n, k), out)
    batched = MatmulAttrs.contiguous((4, 3, 9, k), (k, n), packed=True)
    check(batched, random(1, 4, 3, 9, k), random(2, k, n), np.zeros((4, 3, 9, n), np.float32))


def test_a_row_s_result_depends_on_that_row_alone() -> None:
    """Bit by bit, however many rows and threads there are; what is not finite stays in its row."""
    k, n = 530, 420
    a, b = random(1, 128, k), random(2, k, n)
    a[5, 3], a[70, 8] = np.inf, np.nan
    configure = tvm_ffi.get_global_func("runtime.config_threadpool")
    before = cpu.available().threads
    found = []
    try:
        for threads, rows in ((1, 128), (2, 128), (2, 128), (2, 34), (1, 99)):
            configure(1, threads)
            attrs = MatmulAttrs.contiguous((rows, k), (k, n), packed=True)
            out = np.zeros((rows, n), np.float32)
            found.append(run(attrs, a[:rows].copy(), packed(attrs, b), out=out))
    finally:
        configure(1, before)
    for each in found:
        assert np.array_equal(each, found[0][: len(each)], equal_nan=True)
    finite = np.isfinite(found[0]).all(axis=1)
    assert set(np.flatnonzero(~finite)) == {5, 70}


def test_one_weight_serves_few_rows_and_many() -> None:
    """Packed for many rows, it is converted for none: tiles of few rows read the same panels."""
    k, n = 150, 270
    b = random(2, k, n)
    many = evolve(MatmulAttrs.contiguous((64, k), (k, n), packed=True), packed_for=2048)
    weight = packed(many, b)
    before = cpu.available().converted_bytes
    for rows, plan in ((1, "tiles"), (4, "tiles"), (64, "panels")):
        attrs = evolve(MatmulAttrs.contiguous((rows, k), (k, n), packed=True), packed_for=2048)
        assert cpu.describe(attrs)["plan"] == plan
        a, out = random(1, rows, k), tvm.runtime.tensor(np.zeros((rows, n), np.float32))
        tvm_ffi.get_global_func(cpu.MATMUL)(tvm.runtime.tensor(a), weight, attrs.to_json(), out)
        want = a.astype(np.float64) @ b
        assert np.abs(out.numpy() - want).max() <= TOLERANCE * np.abs(want).max()
    assert cpu.available().converted_bytes == before


@pytest.mark.parametrize(("m", "n", "parts"), [(128, 384, [1, 2, 1]), (34, 2048, [1, 1, 2])])
def test_threads_share_rows_or_panels(m: int, n: int, parts: list[int]) -> None:
    """Rows where they are many, panels where columns are."""
    k = 300
    configure = tvm_ffi.get_global_func("runtime.config_threadpool")
    before = cpu.available().threads
    configure(1, 2)
    try:
        attrs = MatmulAttrs.contiguous((m, k), (k, n), packed=True, activation="silu")
        assert cpu.describe(attrs)["parts"] == parts
        check(attrs, random(1, m, k), random(2, k, n), np.zeros((m, n), np.float32))
    finally:
        configure(1, before)
