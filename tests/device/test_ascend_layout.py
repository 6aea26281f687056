# SPDX-License-Identifier: Apache-2.0
"""Reductions, broadcasts, gathers and transposes on the model of the 910B, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.device import ascend_texts as texts
from tests.device.test_ascend_vector import C, computed, numbers

ALL = texts.ALL


def tree(values: np.ndarray) -> np.ndarray:
    """Sums of the last axis, neighbours first, in the type of the values."""
    while values.shape[-1] > 1:
        values = (values[..., ::2] + values[..., 1::2]).astype(values.dtype)
    return values[..., 0]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_reductions_of_repeats_and_blocks(dtype: str) -> None:
    lanes = 64 if dtype == "float32" else 128
    x = numbers(dtype, 4 * lanes)
    rows, t = x.reshape(4, lanes), C[dtype]
    zero = f"  Duplicate(c, ({t})0.0f, 64); {ALL} "
    order = "ReduceOrder::ORDER_ONLY_VALUE"
    per_block = 32 // x.itemsize
    for body, expected in {
        f"WholeReduceSum(c, a, {lanes}, 4, 1, 1, 8);": tree(rows),
        f"WholeReduceMax(c, a, {lanes}, 4, 1, 1, 8, {order});": rows.max(1),
        f"WholeReduceMin(c, a, {lanes}, 4, 1, 1, 8, {order});": rows.min(1),
        f"BlockReduceSum(c, a, 4, {lanes}, 1, 1, 8);": tree(x.reshape(-1, per_block)),
        f"BlockReduceMax(c, a, 4, {lanes}, 1, 1, 8);": x.reshape(-1, per_block).max(1),
        f"BlockReduceMin(c, a, 4, {lanes}, 1, 1, 8);": x.reshape(-1, per_block).min(1),
        # A tail: 11 elements of each row.
        f"WholeReduceMax(c, a, 11, 4, 1, 1, 8, {order});": rows[:, :11].max(1),
    }.items():
        got = computed(zero + body, x, x, out=64)
        np.testing.assert_array_equal(got[: expected.size], expected, err_msg=body)


def test_sums_of_a_tail_skip_what_the_mask_leaves_out() -> None:
    x = numbers("float32", 128)
    got = computed(f"  Duplicate(c, 0.0f, 64); {ALL} WholeReduceSum(c, a, 5, 2, 1, 1, 8);", x, x, out=64)
    v = x.reshape(2, 64)[:, :5]
    expected = ((v[:, 0] + v[:, 1]) + (v[:, 2] + v[:, 3])) + v[:, 4]
    np.testing.assert_array_equal(got[:2], expected)
    # A block without an element under the mask keeps what was there.
    got = computed(f"  Duplicate(c, 9.0f, 64); {ALL} BlockReduceMax(c, a, 1, 12, 1, 1, 8);", x, x, out=64)
    np.testing.assert_array_equal(got[:3], [x[:8].max(), x[8:12].max(), 9])


def test_rows_that_follow_each_other_in_memory_stay_apart() -> None:
    """Repeats of 16 lanes, two blocks apart: memory goes on without a gap, the lanes do not."""
    x = numbers("float32", 256)
    got = computed(f"  Duplicate(c, 0.0f, 64); {ALL} WholeReduceSum(c, a, 16, 16, 1, 1, 2);", x, x, out=64)
    np.testing.assert_array_equal(got[:16], tree(x.reshape(16, 16)))


def test_maximum_with_its_place() -> None:
    x = numbers("float32", 128)
    x[17] = x[40] = 77
    got = computed(f"  Duplicate(c, 0.0f, 64); {ALL} WholeReduceMax(c, a, 64, 2, 1, 1, 8);", x, x, out=64)
    assert got[0] == 77 and got[1:2].view(np.uint32)[0] == 17, "the first of equals"
    np.testing.assert_array_equal(got[2], x[64:].max())


def test_reductions_of_all() -> None:
    x = numbers("float32", 200)
    work = "  LocalTensor<float> w = ub.GetWithOffset<float>(64, 49152);\n"
    zero = f"{work}  Duplicate(c, 0.0f, 64); {ALL} "
    got = computed(zero + "ReduceSum(c, a, w, 192);", x, x, out=64)
    expected = np.float32(0)
    for row in tree(x[:192].reshape(3, 64)):
        expected = expected + row
    assert got[0] == expected
    got = computed(zero + "ReduceMax(c, a, w, 200, true);", x, x, out=64)
    assert got[0] == x.max() and got[1:2].view(np.uint32)[0] == x.argmax()
    got = computed(zero + "ReduceMin(c, a, w, 64, 3, 8);", x[:192], x[:192], out=64)
    assert got[0] == x[:192].min()


def test_broadcasts_and_copies() -> None:
    x = numbers("float32", 64)
    got = computed("  Brcb(c, a, 2, {1, 8});", x, x, out=128)
    np.testing.assert_array_equal(got, np.repeat(x[:16], 8))
    got = computed("  Copy(c, a, 8, 4, {1, 1, 1, 2});", x, x, out=32)
    np.testing.assert_array_equal(got, x.reshape(4, 16)[:, :8].reshape(-1))


@pytest.mark.parametrize("count", [1, 5, 8, 9, 64, 100, 150])
def test_indices(count: int) -> None:
    """CreateVecIndex writes as many elements as it is told to."""
    given = numbers("int32", 192)
    lines = f"""  Duplicate(c, (int32_t)0, 192);
  {ALL}
  CreateVecIndex(c, (int32_t)5, {count}U);"""
    want = np.zeros(192, np.int32)
    want[:count] = np.arange(5, 5 + count)
    np.testing.assert_array_equal(computed(lines, given, given, out=192), want)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gather(dtype: str) -> None:
    """Offsets are made by the kernel: the elements from the last to the first."""
    x = numbers(dtype, 128)
    got = computed(
        f"""  LocalTensor<int32_t> o = ub.GetWithOffset<int32_t>(128, 49152);
  CreateVecIndex(o, (int32_t)0, 128U);
  {ALL}
  Muls(o, o, (int32_t)-{x.itemsize}, 128);
  {ALL}
  Adds(o, o, (int32_t){127 * x.itemsize}, 128);
  {ALL}
  Gather(c, a, o.ReinterpretCast<uint32_t>(), 0, 128);""",
        x,
        x,
    )
    np.testing.assert_array_equal(got, x[::-1])


def test_transposes() -> None:
    x = numbers("uint16", 256)
    np.testing.assert_array_equal(
        computed("  Transpose(c, a);", x, x), np.ascontiguousarray(x.reshape(16, 16).T).reshape(-1)
    )
    lists = """  uint64_t d[16], s[16];
  for (int i = 0; i < 16; ++i) { s[i] = a[i * %d].GetPhyAddr(); d[i] = c[i * %d].GetPhyAddr(); }
  TransDataTo5HD<%s>(d, s, {false, false, 1, 0, 0});"""
    got = computed(lists % (16, 16, "uint16_t"), x, x)
    np.testing.assert_array_equal(got, np.ascontiguousarray(x.reshape(16, 16).T).reshape(-1))
    # Of four bytes: 16 rows of 8 become 8 rows of 16.
    x = numbers("int32", 128)
    got = computed(lists % (8, 8, "int32_t"), x, x)
    np.testing.assert_array_equal(got, np.ascontiguousarray(x.reshape(16, 8).T).reshape(-1))
