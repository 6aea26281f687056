# SPDX-License-Identifier: Apache-2.0
"""Inputs of comparisons: what is special in them is what was asked for."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.verify.cases import HIGHEST_INTEGER, SECTION, SHIFTS, FunctionBuffer, Specials, value_arrays

PLAIN = Specials(infinite=False, extreme=False)
FLOATS = FunctionBuffer("x", "fp32", SECTION * len(SHIFTS))
LONG = FunctionBuffer("x", "fp32", 20 * SECTION * len(SHIFTS))
INTEGERS = FunctionBuffer("i", "int32", 600)


def values(specials: Specials, buffer: FunctionBuffer = FLOATS, seed: int = 0) -> np.ndarray:
    (array,) = value_arrays([buffer], seed, specials)
    return array.astype(np.float64)


def shifts_of(array: np.ndarray) -> list[float]:
    """What each section is shifted by: its median, to the nearest shift."""
    middles = np.median(array.reshape(-1, SECTION), axis=1)
    return [min(SHIFTS, key=lambda shift: abs(shift - middle)) for middle in middles]


def test_plain_numbers_are_small() -> None:
    assert np.abs(values(PLAIN)).max() <= 2.5


@pytest.mark.parametrize(
    "specials",
    [Specials(infinite=False), Specials(infinite=False, extreme=False, shifted=True)],
    ids=["extreme", "shifted"],
)
def test_sections_are_far_from_zero_in_turns(specials: Specials) -> None:
    assert sorted(shifts_of(values(specials))) == sorted(SHIFTS)
    assert shifts_of(values(specials, seed=1)) != shifts_of(values(specials))


def test_magnitudes_and_infinities_come_where_they_are_asked_for() -> None:
    largest = float(np.finfo(np.float32).max)
    assert largest in values(Specials(infinite=False), LONG)
    assert np.isfinite(values(Specials(infinite=False), LONG)).all()
    assert largest not in values(Specials(extreme=False), LONG)
    both = values(Specials(), LONG)
    assert np.isnan(both).any() and np.inf in both and -np.inf in both


def test_integers_lie_outside_of_tables_only_where_they_are_asked_for() -> None:
    inside = values(PLAIN, INTEGERS)
    assert inside.min() == 0 and inside.max() == HIGHEST_INTEGER - 1
    outside = values(Specials(outside=True), INTEGERS)
    limits = np.iinfo(np.int32)
    assert outside.min() == limits.min and outside.max() == limits.max
