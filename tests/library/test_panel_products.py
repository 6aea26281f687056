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
    if cpu.describe(MatmulAttrs.contiguous((128, 64), (64, 64), packed=True))["plan"] != "panels":
        pytest.skip("this CPU's products of many rows are the library's")


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def packed(attrs: MatmulAttrs, b: Array) -> Any:
    return cpu.pack_weight(tvm.runtime.tensor(b), attrs)


def run(attrs: MatmulAttrs, a: Array, weight: Any, *more: Array, out: Array) -> Array:
    """The buffer of the result after the call."""
    assert cpu.describe(attrs)["plan"] == "panels"
    result = tvm.runtime.tensor(out)
    operands = [tvm.runtime.tensor(each) for each in more]
    tvm_ffi.get_global_func(cpu.MATMUL)(tvm.runtime.tensor(a), weight, *operands, attrs.to_json(), result)
    return result.numpy()


def check(attrs: MatmulAttrs, a: Array, b: Array, out: Array, **more: Array) -> None:
    got = run(attrs, a, packed(attrs, b), *more.values(), out=out)
    want = reference.matmul(attrs, a, b, **more, out=out)
    assert np.abs(got - want).max() <= TOLERANCE * np.abs(want).max()


@pytest.mark.parametrize("k", [1, 3, 255, 257, 700])
@pytest.mark.parametrize("n", [2, 8, 17, 24, 41, 250])
@pytest.mark.parametrize("m", [33, 50, 211])
def test_sizes(threads: int, m: int, n: int, k: int) -> None:
    """Rows that no tile and no block divides, last panels of one to three vectors, pieces."""
    attrs = MatmulAttrs.contiguous((m, k), (k, n), packed=True, bias=True)
    check(attrs, random(1, m, k), random(2, k, n), np.zeros((m, n), np.float32), bias=random(3, n))


@pytest.mark.parametrize("residual", ["before_activation", "after_activation"])
@pytest.mark.parametrize("activation", ["none", "gelu_erf", "gelu_tanh", "silu", "clip(-20.0,15.0)"])
def test_epilogues_of_several_pieces(activation: str, residual: str) -> None:
    """A residual is read where the sums of all pieces are done, and only there."""
    m, k, n = 40, 600, 37
    attrs = MatmulAttrs.contiguous(
        (m, k), (k, n), packed=True, bias=True, alpha=0.25, activation=activation, residual=residual
    )
    more = {"bias": random(3, n), "residual": random(4, m, n)}
    check(attrs, random(1, m, k), random(2, k, n), np.full((m, n), 9, np.float32), **more)


def test_views(threads: int) -> None:
    """Rows that lie as columns, a result within a wider one, a batch of rows: nothing else is written."""
    m, k, n = 45, 300, 50
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
    k, n = 150, 70
    b = random(2, k, n)
    many = evolve(MatmulAttrs.contiguous((64, k), (k, n), packed=True), packed_for=2048)
    weight = packed(many, b)
    before = cpu.available().converted_bytes
    for rows, plan in ((1, "tiles"), (20, "tiles"), (64, "panels")):
        attrs = evolve(MatmulAttrs.contiguous((rows, k), (k, n), packed=True), packed_for=2048)
        assert cpu.describe(attrs)["plan"] == plan
        a, out = random(1, rows, k), tvm.runtime.tensor(np.zeros((rows, n), np.float32))
        tvm_ffi.get_global_func(cpu.MATMUL)(tvm.runtime.tensor(a), weight, attrs.to_json(), out)
        want = a.astype(np.float64) @ b
        assert np.abs(out.numpy() - want).max() <= TOLERANCE * np.abs(want).max()
    assert cpu.available().converted_bytes == before


@pytest.mark.parametrize(("m", "n", "parts"), [(128, 384, [1, 2, 1]), (34, 2000, [1, 1, 2])])
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
