# SPDX-License-Identifier: Apache-2.0
"""A peer of the benchmarks whose results are wrong is found out, whatever is wrong of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

ONE, TWO = np.array([[1.0, -4.0], [2.0, 3.0]]), np.arange(3.0)


def error(turns: Any, found: list[np.ndarray]) -> float:
    """What is said of a peer with these outputs, where ONE and TWO are right."""
    peer = object.__new__(turns.Peer)
    peer._process = SimpleNamespace(ask=lambda seconds, what: found)
    peer._answer = 1.0
    return float(peer.error([ONE, TWO]))


def test_right_results(turns: Any) -> None:
    """Float32 of small numbers is exact."""
    assert error(turns, [ONE.astype("float32"), TWO.astype("float32")]) == 0.0


@pytest.mark.parametrize("output", [0, 1])
def test_every_output_is_compared(turns: Any, output: int) -> None:
    """An element that is off by a tenth of the largest value, wherever it is."""
    found = [ONE.copy(), TWO.copy()]
    found[output].flat[-1] += 0.1 * np.abs(found[output]).max()
    assert error(turns, found) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "found",
    [[ONE], [ONE, TWO, TWO], [ONE[:1], TWO], [ONE, TWO[:, None]], [ONE.reshape(4), TWO]],
    ids=["too few", "too many", "a row that broadcasts", "an axis more", "flat"],
)
def test_other_shapes_are_wrong(turns: Any, found: list[np.ndarray]) -> None:
    """Shapes that NumPy would broadcast are no agreement."""
    assert error(turns, found) == math.inf


def test_no_number_is_wrong(turns: Any) -> None:
    """NaN agrees with nothing, in whichever output."""
    assert error(turns, [np.full_like(ONE, np.nan), TWO]) == math.inf
    assert error(turns, [ONE, np.array([0.0, np.nan, 2.0])]) == math.inf
