# SPDX-License-Identifier: Apache-2.0
"""Random functions go through their recipe and an iGraph, and compute what NumPy says.

A few examples here, the same ones every time; ``scripts/fuzz.py --minutes N`` draws new ones for longer.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.asked import asked

from ..device_targets import DEVICE_TARGETS
from .check_program import check
from .found import FOUND
from .program import Program
from .strategies import programs

#: Longer rows and more of them take the same paths, and the interpreter takes longer.
LARGEST = 2000


@pytest.mark.compares_itself
@settings(
    max_examples=asked(20, 100),
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(programs(LARGEST), st.integers(0, 2**16))
def test_random_function(program: Program, seed: int) -> None:
    check(program, seed)


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", ["uir-cpu", *(row.name for row in DEVICE_TARGETS)])
@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_before(name: str, target: str) -> None:
    check(FOUND[name], target=target)
