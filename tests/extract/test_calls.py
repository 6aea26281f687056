# SPDX-License-Identifier: Apache-2.0
"""Calls, constants, predicates and addresses at the edges of their types: as TVM and NumPy have them."""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from tvm.script import tirx as T
from uir_tvm.extract.expression import _as_number
from uir_tvm.options import CompileOptions
from uir_tvm.schedule import apply_default
from uir_tvm.target.registry import TARGETS

from tests.extracted import extracted

from .compare import HARDWARE


def test_copysign_sees_the_sign_of_infinities_and_zeros() -> None:
    @T.prim_func(s_tir=True)
    def signs(x: T.Buffer((6,), "float32"), y: T.Buffer((6,), "float32"), z: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.sblock("z"):
                a = T.axis.spatial(6, i)
                z[a] = T.copysign(x[a], y[a])

    x = np.array([1, -2, 3, -4, 5, 6], np.float32)
    y = np.array([-np.inf, np.inf, -0.0, 0.0, -1e-45, 2], np.float32)
    np.testing.assert_array_equal(uir_tvm.compile(signs)(x, y), np.copysign(x, y))


@pytest.mark.parametrize("target", TARGETS)
def test_copysign_takes_nan_for_positive(target: str) -> None:
    """On every target, whatever bit a NaN has for its sign; PyTorch reads that bit (docs/numerics.md)."""

    @T.prim_func(s_tir=True)
    def signs(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32"), z: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.sblock("z"):
                a = T.axis.spatial(64, i)
                z[a] = T.copysign(x[a], y[a])

    x = np.linspace(-3, 3, 64).astype(np.float32)
    y = np.full(64, np.nan, np.float32)
    y[::2] = -y[::2]
    assert np.signbit(y).sum() == 32
    options = CompileOptions(device="cpu" if target == "uir-cpu" else "model", faults="raise")
    np.testing.assert_array_equal(uir_tvm.compile(signs, target, options=options)(x, y), np.abs(x))


def test_exp10_is_as_exact_for_large_arguments() -> None:
    """exp(x * log(10)) is off by 40 units in the last place at 38."""

    @T.prim_func(s_tir=True)
    def powers(x: T.Buffer((64,), "float32"), y: T.Buffer((64,), "float32")):
        for i in range(64):
            with T.sblock("y"):
                a = T.axis.spatial(64, i)
                y[a] = T.exp10(x[a])

    x = np.linspace(-37, 38, 64).astype(np.float32)
    wanted = 10.0 ** x.astype(np.float64)
    found = uir_tvm.compile(powers)(x).astype(np.float64)
    assert np.abs(found / wanted - 1).max() < 8 * np.finfo(np.float32).eps / 2


@pytest.mark.parametrize(
    ("number", "dtype", "wanted"),
    [(300, "int8", 44), (-129, "int8", 127), (256, "uint8", 0), (-1, "uint32", 2**32 - 1), (7, "int64", 7)],
)
def test_constants_wrap_around_as_casts_do(number: int, dtype: str, wanted: int) -> None:
    assert _as_number(number, dtype) == wanted


def test_one_wide_index_makes_the_address_wide() -> None:
    """What a run-time index of int64 adds to one of int32 need not fit in the latter."""

    @T.prim_func(s_tir=True)
    def elements(
        table: T.Buffer((7, 40), "float32"),
        rows: T.Buffer((32,), "int64"),
        cols: T.Buffer((32,), "int32"),
        y: T.Buffer((32,), "float32"),
    ):
        for i in range(32):
            with T.sblock("y"):
                a = T.axis.spatial(32, i)
                y[a] = table[rows[a], cols[a]]

    graph = extracted(apply_default(elements, HARDWARE), HARDWARE)
    (gather,) = [iop for iop, _ in graph.walk() if iop.op == "gather"]
    assert gather.sources[1].pointer.dtype == "int64"


def test_addresses_beyond_int32_are_computed_in_int64() -> None:
    @T.prim_func(s_tir=True)
    def elements(
        table: T.Buffer((70000, 40000), "float32"),
        rows: T.Buffer((32,), "int32"),
        cols: T.Buffer((32,), "int32"),
        y: T.Buffer((32,), "float32"),
    ):
        for i in range(32):
            with T.sblock("y"):
                a = T.axis.spatial(32, i)
                y[a] = table[rows[a], cols[a]]

    graph = extracted(apply_default(elements, HARDWARE), HARDWARE)
    (gather,) = [iop for iop, _ in graph.walk() if iop.op == "gather"]
    assert gather.sources[1].pointer.dtype == "int64"
    products = [iop for iop, _ in graph.walk() if iop.name in ("muls", "mul")]
    assert products and all(iop.dtype == "int64" for iop in products)


def test_a_predicate_of_data_on_what_is_summed_up_counts() -> None:
    """It may be dropped where an element is only made once, not where it decides what is added."""

    @T.prim_func(s_tir=True)
    def chosen_sums(
        mask: T.Buffer((8, 16), "int32"), x: T.Buffer((8, 16), "float32"), y: T.Buffer((8,), "float32")
    ):
        total = T.sblock_alloc_buffer((8,), "float32", scope="local")
        for i in range(8):
            with T.sblock("zero"):
                a = T.axis.spatial(8, i)
                total[a] = T.float32(0)
        for i, j in T.grid(8, 16):
            with T.sblock("total"):
                a, b = T.axis.remap("SR", [i, j])
                T.where(mask[i, j] > 0)
                total[a] = total[a] + x[a, b]
        for i in range(8):
            with T.sblock("y"):
                a = T.axis.spatial(8, i)
                y[a] = total[a]

    rng = np.random.default_rng(3)
    mask = rng.integers(0, 2, (8, 16)).astype(np.int32)
    x = rng.standard_normal((8, 16)).astype(np.float32)
    wanted = (mask * x.astype(np.float64)).sum(1)
    np.testing.assert_allclose(uir_tvm.compile(chosen_sums)(mask, x), wanted, atol=1e-5)
