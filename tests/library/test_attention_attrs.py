# SPDX-License-Identifier: Apache-2.0
"""Attention as a library operator against NumPy in float64; what it does not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm
import tvm_ffi
from attrs import evolve
from uir_tvm.errors import ShapeError
from uir_tvm.library.attention_attrs import AttentionAttrs
from uir_tvm.library.attrs import OperandLayout
from uir_tvm.library.work import work_of

ATTENTION = tvm_ffi.get_global_func("uir.library.cpu.attention")
#: Vectors in which this CPU has tiles for many rows.
VECTORS = [str(name) for name in tvm_ffi.get_global_func("uir.library.cpu.attention_vectors")()]


@pytest.fixture(autouse=True, params=VECTORS or ["any"])
def vectors(request: pytest.FixtureRequest) -> Iterator[None]:
    """All that this CPU can run, one after the other; by default the first."""
    choose = tvm_ffi.get_global_func("uir.library.cpu.set_attention_vectors")
    if VECTORS:
        choose(request.param)
    yield
    if VECTORS:
        choose(VECTORS[0])


def attributes(units: int, shared: int, m: int, n: int, d: int, e: int, **more: Any) -> AttentionAttrs:
    """`shared` heads of queries for each head of keys; the heads of the result lie side by side."""
    heads = units * shared
    return AttentionAttrs(
        batch=(units, shared),
        m=m,
        n=n,
        d=d,
        e=e,
        query=OperandLayout((shared * m * d, m * d, d, 1)),
        key=OperandLayout((n * d, 0, d, 1)),
        value=OperandLayout((n * e, 0, e, 1)),
        mask=OperandLayout((0, 0, n, 1)),
        out=OperandLayout((shared * e, e, heads * e, 1)),
        **more,
    )


def wanted(of: AttentionAttrs, q: Any, k: Any, v: Any, mask: Any) -> np.ndarray:
    x = of.scale * (q.astype(np.float64) @ k.astype(np.float64)[:, None].swapaxes(-1, -2))
    x = x if mask is None else x + mask
    with np.errstate(invalid="ignore"):
        weights = np.exp(x - x.max(-1, keepdims=True))
    weights = np.where(np.isneginf(x), 0, weights)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        weights = weights / np.where(total == 0, 1, total) if of.safe else weights / total
    return np.moveaxis(weights @ v[:, None].astype(np.float64), 2, 0)


def run(of: AttentionAttrs, *operands: Any, dtype: Any = np.float32) -> np.ndarray:
    out = tvm.runtime.tensor(np.full((of.m, *of.batch, of.e), np.nan, dtype))
    ATTENTION(*map(tvm.runtime.tensor, operands), of.to_json(), out)
    return out.numpy()


@pytest.mark.parametrize(
    ("m", "n", "d", "e"),
    [
        (1, 300, 64, 64),
        (1, 70, 20, 37),
        (5, 130, 64, 64),
        (40, 200, 24, 48),
        (130, 150, 64, 64),
        (1, 3000, 64, 64),
    ],
)
def test_rows_over_open_keys(m: int, n: int, d: int, e: int) -> None:
    """Few and many rows, few and many keys; the mask opens a part of each row."""
    rng = np.random.default_rng(m * n)
    of = attributes(3, 3, m, n, d, e, scale=0.2, masked=True)
    q, k, v = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((3, 3, m, d), (3, n, d), (3, n, e))
    )
    place = np.arange(n)[None]
    last = np.minimum(np.arange(m) + n // 2, n - 1)[:, None]
    mask = np.where((place <= last) & (place >= last - n // 3), 0.0, -np.inf).astype(np.float32)
    mask[:, n // 3] = -np.inf  # closed between open ones
    k[:, n // 2 + m :] = np.nan  # what no row opens is not read
    v[:, : max(0, n // 2 - n // 3)] = np.inf
    clean = [np.nan_to_num(each, nan=0, posinf=0) for each in (k, v)]
    got = run(of, q, k, v, mask)
    want = wanted(of, q, *clean, mask)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    ("m", "n", "d", "e"), [(1, 300, 64, 64), (2, 70, 20, 37), (40, 200, 24, 48), (130, 700, 64, 64)]
)
def test_narrow_keys_and_values(m: int, n: int, d: int, e: int, dtype: Any) -> None:
    """What is narrow is read exactly and summed in float32; a narrow result is rounded once."""
    rng = np.random.default_rng(m * n)
    of = attributes(3, 3, m, n, d, e, scale=0.2, masked=True)
    q, k, v = (rng.standard_normal(shape).astype(dtype) for shape in ((3, 3, m, d), (3, n, d), (3, n, e)))
    mask = np.where(np.arange(n)[None] <= np.arange(m)[:, None] + n // 2, 0.5, -np.inf).astype(dtype)
    k[:, n // 2 + m :] = np.nan  # what no row opens is not read
    want = wanted(
        of, *(np.nan_to_num(each.astype(np.float32)) for each in (q, k, v)), mask.astype(np.float32)
    )
    got = run(of, q.astype(np.float32), k, v, mask)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    narrow = run(of, q, k, v, mask.astype(np.float32), dtype=dtype)
    np.testing.assert_allclose(
        narrow.astype(np.float32), want, rtol=float(ml_dtypes.finfo(dtype).eps), atol=2e-6
    )


def test_numbers_are_added_to_scores_and_no_mask_is_needed() -> None:
    rng = np.random.default_rng(2)
    q, k, v, mask = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((2, 2, 7, 16), (2, 90, 16), (2, 90, 16), (7, 90))
    )
    of = attributes(2, 2, 7, 90, 16, 16, scale=0.5, masked=True)
    np.testing.assert_allclose(run(of, q, k, v, mask), wanted(of, q, k, v, mask), rtol=2e-5, atol=2e-6)
    of = attributes(2, 2, 7, 90, 16, 16)
    np.testing.assert_allclose(run(of, q, k, v), wanted(of, q, k, v, None), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(("m", "n", "d", "e"), [(3, 50, 16, 16), (70, 300, 40, 72), (33, 530, 64, 20)])
@pytest.mark.parametrize(("first", "last"), [(None, 4), (-9, None), (-40, 7), (200, None)])
def test_bands(m: int, n: int, d: int, e: int, first: int | None, last: int | None) -> None:
    """Keys by their distance from the query, with few rows and many; rows that see none."""
    rng = np.random.default_rng(m + n)
    q, k, v = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((2, 2, m, d), (2, n, d), (2, n, e))
    )
    of = attributes(2, 2, m, n, d, e, scale=0.2, safe=True, first=first, last=last)
    distance = np.arange(n)[None] - np.arange(m)[:, None]
    is_open = (distance >= (-m if first is None else first)) & (distance <= (n if last is None else last))
    want = wanted(of, q, k, v, np.where(is_open, 0.0, -np.inf))
    np.testing.assert_allclose(run(of, q, k, v), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("odd", [None, np.nan, np.inf])
def test_many_narrow_rows_with_masks_of_their_own(dtype: Any, odd: float | None) -> None:
    """A mask for each head, a band, a row without a key, a key that is no number."""
    rng = np.random.default_rng(6)
    m, n, d, e = 50, 130, 24, 40
    of = attributes(2, 2, m, n, d, e, scale=0.3, masked=True, safe=True, last=90)
    of = evolve(of, mask=OperandLayout((2 * m * n, m * n, n, 1)))
    q, k, v, mask = (
        rng.standard_normal(shape).astype(dtype)
        for shape in ((2, 2, m, d), (2, n, d), (2, n, e), (2, 2, m, n))
    )
    mask[1, 0, 7] = -np.inf
    if odd is not None:
        k[1, 20, 3] = odd
    place = np.arange(n)[None] - np.arange(m)[:, None]
    wide = [each.astype(np.float32) for each in (q, k, v)]
    added = np.where(place <= 90, mask.astype(np.float32), -np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        want = wanted(of, *wide, added)
    got = run(of, q, k, v, mask, dtype=dtype).astype(np.float32)
    assert not got[7, 1, 0].any()
    opened = np.ones(got.shape, bool)
    opened[7, 1, 0] = False  # NumPy's product has no rule for keys that a row does not see
    np.testing.assert_allclose(got[opened], want[opened], rtol=float(ml_dtypes.finfo(dtype).eps), atol=2e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e30, 1e-30])
@pytest.mark.parametrize("where", [0, 1, 2])
def test_numbers_that_have_no_pieces(odd: float, where: int) -> None:
    """Many rows are right where a query, key or value is no number or very large, or all are very small."""
    rng = np.random.default_rng(4)
    operands = [
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((1, 1, 40, 32), (1, 300, 32), (1, 300, 32))
    ]
    if odd < 1:
        operands[where] *= np.float32(odd)
    else:
        operands[where][0, ..., 7, 3] = odd
    of = attributes(1, 1, 40, 300, 32, 32, scale=0.3)
    with np.errstate(invalid="ignore", over="ignore"):
        want = wanted(of, *operands, None)
    smallest = odd if where == 2 and odd < 1 else 1
    np.testing.assert_allclose(run(of, *operands), want, rtol=2e-5, atol=2e-6 * smallest)


def test_many_rows_are_exact_to_the_last_bits() -> None:
    """In root mean square within a quarter more of the error that float32 itself makes."""
    rng = np.random.default_rng(5)
    q, k, v = (rng.standard_normal((3, 1, 200, 64)).astype(np.float32) for _ in range(3))
    k, v = k[:, 0], v[:, 0]
    of = attributes(3, 1, 200, 200, 64, 64, scale=0.125)
    x = np.float32(0.125) * (q @ k[:, None].swapaxes(-1, -2))
    weights = np.exp(x - x.max(-1, keepdims=True))
    plain = np.moveaxis(weights / weights.sum(-1, keepdims=True) @ v[:, None], 2, 0)
    want = wanted(of, q, k, v, None)

    def error(of_this: np.ndarray) -> float:
        return float(np.sqrt(np.square(of_this - want).mean()))

    assert error(run(of, q, k, v)) < 1.25 * error(plain)


def test_lowest_numbers_close_a_row_evenly() -> None:
    """A row whose mask is the lowest number everywhere weighs all keys alike, as many rows and as few."""
    for m in (2, 40):
        q, k = np.ones((1, 1, m, 8), np.float32), np.ones((1, 70, 8), np.float32)
        v = np.arange(70 * 8, dtype=np.float32).reshape(1, 70, 8)
        mask = np.full((m, 70), np.finfo(np.float32).min)
        got = run(attributes(1, 1, m, 70, 8, 8, masked=True), q, k, v, mask)
        np.testing.assert_allclose(got[:, 0, 0], np.broadcast_to(v[0].mean(0), (m, 8)), rtol=1e-6)


def test_large_scores_and_rows_without_a_key() -> None:
    q, k = np.full((1, 1, 2, 8), 30, np.float32), np.full((1, 70, 8), 30, np.float32)
    k[0, 3] = 31
    v = np.arange(70 * 8, dtype=np.float32).reshape(1, 70, 8)
    mask = np.zeros((2, 70), np.float32)
    mask[1] = -np.inf
    for safe in (False, True):
        got = run(attributes(1, 1, 2, 70, 8, 8, masked=True, safe=safe), q, k, v, mask)
        np.testing.assert_array_equal(got[0, 0, 0], v[0, 3])
        assert (got[1] == 0).all() if safe else np.isnan(got[1]).all()


@pytest.mark.parametrize(("m", "n", "d", "e"), [(33, 600, 128, 128), (45, 530, 37, 21), (16, 40, 8, 3)])
@pytest.mark.parametrize("larger", ["no keys", "the first keys", "the last keys", "all keys"])
def test_keys_of_all_lengths(m: int, n: int, d: int, e: int, larger: str) -> None:
    """No maximum is taken off scores of short keys, one of long keys, also where a row has both."""
    rng = np.random.default_rng(n)
    q, k, v = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, m, d), (2, n, d), (2, n, e))
    )
    some = {"no keys": 0, "the first keys": n // 3, "the last keys": -n // 3, "all keys": n}[larger]
    where = slice(0, some) if some >= 0 else slice(some, None)
    k[:, where] *= 8
    of = attributes(2, 3, m, n, d, e, scale=d**-0.5)
    # scores of tens have an error of their own
    np.testing.assert_allclose(
        run(of, q, k, v), wanted(of, q, k, v, None), rtol=2e-5, atol=4e-5 if some else 2e-6
    )


def test_a_row_whose_keys_are_all_long() -> None:
    """A band opens late rows to late keys alone, which are long, and whose scores are far below zero."""
    rng = np.random.default_rng(8)
    q = np.full((4, 1, 320, 128), 0.5, np.float32)
    k, v = (rng.standard_normal((4, 600, 128)).astype(np.float32) for _ in range(2))
    k[:, 256:] -= 20
    of = attributes(4, 1, 320, 600, 128, 128, scale=128**-0.5, first=0)
    closed = np.where(np.arange(600)[None] < np.arange(320)[:, None], -np.inf, 0)
    np.testing.assert_allclose(run(of, q, k, v), wanted(of, q, k, v, closed), rtol=2e-5, atol=1e-4)


def test_many_rows_of_which_some_have_no_key() -> None:
    """Rows whose mask is -inf everywhere are zeros or NaN; those beside them are as they would be."""
    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((1, *shape, 24)).astype(np.float32) for shape in ((1, 50), (90,), (90,)))
    mask = np.where(rng.random((50, 90)) < 0.3, -np.inf, rng.standard_normal((50, 90))).astype(np.float32)
    closed = [0, 7, 8, 31, 49]
    mask[closed] = -np.inf
    for safe in (False, True):
        of = attributes(1, 1, 50, 90, 24, 24, scale=0.2, masked=True, safe=safe)
        got = run(of, q, k, v, mask)
        assert (got[closed] == 0).all() if safe else np.isnan(got[closed]).all()
        np.testing.assert_allclose(got, wanted(of, q, k, v, mask), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("apart", [40, 200, 400])
@pytest.mark.parametrize("last", [None, 30])
def test_rows_that_are_apart(apart: int, last: int | None) -> None:
    """Keys and values whose rows lie so many numbers apart, as heads side by side leave them; odd sizes."""
    rng = np.random.default_rng(apart)
    m, n, d, e = 75, 283, 40, 40
    q = rng.standard_normal((1, 1, m, d)).astype(np.float32)
    k, v = (rng.standard_normal((1, n, apart)).astype(np.float32) for _ in range(2))
    of = attributes(1, 1, m, n, d, e, scale=0.2, last=last)
    of = evolve(
        of, key=OperandLayout((n * apart, 0, apart, 1)), value=OperandLayout((n * apart, 0, apart, 1))
    )
    closed = np.zeros((m, n))
    if last is not None:
        closed[np.arange(n)[None] - np.arange(m)[:, None] > last] = -np.inf
    want = wanted(of, q, k[..., :d], v[..., :e], closed)
    np.testing.assert_allclose(run(of, q, k, v), want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 3e38])
def test_values_whose_sums_are_no_numbers(odd: float) -> None:
    """A value that is none, or so large that weights not yet divided take it beyond all numbers."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((1, *shape, 32)).astype(np.float32) for shape in ((1, 40), (90,), (90,)))
    v[0, 5, 7] = odd
    of = attributes(1, 1, 40, 90, 32, 32, scale=0.3)
    np.testing.assert_allclose(run(of, q, k, v), wanted(of, q, k, v, None), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("what", ["attention", "tile"])
def test_unknown_vectors(what: str) -> None:
    """The error names what there is."""
    known = ", ".join(tvm_ffi.get_global_func(f"uir.library.cpu.{what}_vectors")()) or "none here"
    with pytest.raises(ValueError, match="of another make") as raised:
        tvm_ffi.get_global_func(f"uir.library.cpu.set_{what}_vectors")("of another make")
    assert f"need:   one of: {known}" in str(raised.value) and "remedy: " in str(raised.value)


def test_what_it_does_not_take() -> None:
    of = attributes(1, 2, 3, 4, 8, 8, masked=True)
    good = [np.ones(shape, np.float32) for shape in ((1, 2, 3, 8), (1, 4, 8), (1, 4, 8), (3, 4))]
    run(of, *good)
    assert work_of("attention", of.to_json()).operations == 2 * 6 * 4 * 16
    with pytest.raises(ValueError, match="operand 3"):
        run(of, *good[:2], good[2].astype(np.float16), good[3])
    with pytest.raises(ValueError, match="another type"):
        run(of, good[0].astype(np.float64), *good[1:])
    with pytest.raises(ValueError, match="6: queries, keys, values, mask"):
        run(of, *good[:3])
    with pytest.raises(ValueError, match="mask does not fit"):
        run(of, *good[:3], good[3][:2].copy())
    text = of.to_json()
    for wrong, match in ((text.replace("[0,[32,0,8,1]]", "[0,[32,0,8,2]]"), "stride 2"), (text[:-1], "JSON")):
        with pytest.raises(ValueError, match=match):
            ATTENTION(
                *map(tvm_ffi.from_dlpack, good), wrong, tvm_ffi.from_dlpack(np.ones((3, 1, 2, 8), np.float32))
            )
    with pytest.raises(ShapeError):
        attributes(1, 1, -1, 4, 8, 8)
