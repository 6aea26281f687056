# SPDX-License-Identifier: Apache-2.0
"""What counts as the same result, and what does not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from uir_tvm.verify.agreement import SHOWN, SMALLEST, TVM_TOLERANCE, Reference, differences

RNG = np.random.default_rng(0)


def _reference(wanted: np.ndarray, *, sums: bool = False, wide: np.ndarray | None = None) -> Reference:
    """One input and one output."""
    given = np.arange(4, dtype="float32")
    results = ((given, wanted),) if wide is None else ((given, wanted), (given, wide))
    return Reference(("x", "y"), (False, True), (given, wanted), results, sums, (0.0, 1.0))


def _wrong(reference: Reference, got: np.ndarray, **tolerance: float) -> int:
    """How many elements of the output differ."""
    found = differences(reference, [None, got], tolerance)
    return sum(difference.count for difference in found)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_rounding_is_allowed_and_errors_are_not(dtype: str) -> None:
    """Just below the tolerance, and just above, relative to each element."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    wanted = RNG.uniform(1, 2, 50).astype(kind)
    step = TVM_TOLERANCE[dtype]
    near, far = ((wanted.astype("float64") * (1 + k * step)).astype(kind) for k in (0.25, 4))
    assert _wrong(_reference(wanted), near) == 0
    assert _wrong(_reference(wanted), far) == 50
    assert _wrong(_reference(wanted), far, **{dtype: 1.0}) == 0


def test_an_error_does_not_hide_behind_large_elements() -> None:
    """One element of a million makes no other one's error small, with sums or without."""
    wanted = np.ones(1000, "float32")
    wanted[0] = 1e6
    got = wanted.copy()
    got[500] += 1e-2
    for sums in (False, True):
        assert _wrong(_reference(wanted, sums=sums), got) == 1


def test_sums_that_cancel_may_differ_as_others_do() -> None:
    """By the tolerance of what most elements are; without sums, of what is summed in the element itself."""
    wanted = np.full(100, 50.0, "float32")
    wanted[3] = 0.0
    got = wanted.copy()
    got[3] = 50 * TVM_TOLERANCE["float32"] / 2
    assert _wrong(_reference(wanted, sums=True), got) == 0
    assert _wrong(_reference(wanted), got) == 1
    got[3] = SMALLEST * TVM_TOLERANCE["float32"] / 2
    assert _wrong(_reference(wanted), got) == 0


def test_what_is_no_number_is_equal() -> None:
    """NaN to NaN, infinities by their sign; a number in the place of one differs, and the other way round."""
    wanted = np.array([np.nan, np.inf, -np.inf, 1.0, np.inf], "float32")
    assert _wrong(_reference(wanted), wanted.copy()) == 0
    got = np.array([1.0, -np.inf, np.nan, np.nan, 3e38], "float32")
    (difference,) = differences(_reference(wanted), [None, got])
    assert difference.count == 5
    assert difference.largest == np.inf


def test_whole_numbers_and_bools_are_equal() -> None:
    """By one is wrong."""
    for wanted in (np.arange(5), np.array([True, False, True])):
        got = wanted.copy()
        assert _wrong(_reference(wanted), got) == 0
        got[1] = not got[1]
        assert _wrong(_reference(wanted), got) == 1


def test_either_result_of_narrow_floats_is_right() -> None:
    """Element by element; what is near neither is wrong."""
    wanted, wide = np.ones(4, "float16"), np.full(4, 1.5, "float16")
    got = np.array([1.0, 1.5, 1.25, np.inf], "float16")
    assert _wrong(_reference(wanted, wide=wide), got) == 2


def test_inputs_stay_as_they_are() -> None:
    """The last bit of what is only read counts."""
    reference = _reference(np.ones(3, "float32"))
    given = reference.arguments[0].copy()
    assert not differences(reference, [given, reference.arguments[1]])
    given[2] = np.nextafter(given[2], np.float32(9))
    (difference,) = differences(reference, [given, reference.arguments[1]])
    assert difference.name == "x"


def test_a_difference_says_where() -> None:
    """Index, both values, how many, the largest error; not every element."""
    wanted = np.ones((4, 8), "float32")
    got = wanted.copy()
    got[1, 2] = 3
    (difference,) = differences(_reference(wanted), [None, got.reshape(-1)])
    assert str(difference) == "1 of 32 elements of y differ, by up to 2 of their size"
    assert difference.examples == ("y[1, 2] is 3.0, not 1.0",)
    (difference,) = differences(_reference(wanted), [None, got + 1])
    assert difference.count == 32
    assert len(difference.examples) == SHOWN
