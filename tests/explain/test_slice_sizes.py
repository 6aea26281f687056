# SPDX-License-Identifier: Apache-2.0
"""Some units stand for all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.explain.slice_sizes import sample


@settings(deadline=None, max_examples=30)
@given(extent=st.integers(1, 10_000), count=st.integers(3, 9))
def test_sample_stands_for_all(extent: int, count: int) -> None:
    """First and last are there, each once, and the weights add up to all."""
    values, weights = sample(extent, count)
    assert values[0] == 0 and values[-1] == extent - 1
    assert len(set(values)) == len(values) <= count or extent <= count
    assert weights.sum() == pytest.approx(extent)
