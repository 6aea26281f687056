# SPDX-License-Identifier: Apache-2.0
"""How cost models are judged: ranks, the best of the first few, and how far two measurements agree."""

from __future__ import annotations

import pathlib
import sys

import attrs
import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import cost_model_quality as quality

from tests.tune.graphs import tiled


def rows(count: int = 10, origin: str = "a") -> list[quality.Row]:
    """Schedules of one kernel, each later one slower."""
    return [
        quality.Row("uir-ascend:910b2", "k", origin, str(n), {}, 1e-6 * (n + 1), str(tiled(trips=n + 1)))
        for n in range(count)
    ]


def test_rank_correlation() -> None:
    """1 for the same order, -1 for the opposite, 0 where nothing is told apart; ties share a rank."""
    times = np.array([3.0, 1.0, 2.0, 9.0])
    assert quality.spearman(times**3, times) == pytest.approx(1)
    assert quality.spearman(-times, times) == pytest.approx(-1)
    assert quality.spearman(np.ones(4), times) == 0
    assert quality.ranks(np.array([5.0, 1.0, 5.0])).tolist() == [1.5, 0, 1.5]


def test_only_tasks_that_say_something_are_ranked() -> None:
    same = [attrs.evolve(row, origin="b", seconds=1e-6) for row in rows()]
    few = rows(quality.LEAST - 1, "c")
    (task,) = quality.grouped([*rows(), *same, *few])
    assert task.origin == "a" and len(task.graphs) == 10


def test_the_shorter_of_two_times_counts() -> None:
    slower = [attrs.evolve(row, seconds=2 * row.seconds) for row in rows()]
    (task,) = quality.grouped([*rows(), *slower])
    assert sorted(task.seconds) == pytest.approx([1e-6 * n for n in range(1, 11)])


def test_judged_by_the_first_eight() -> None:
    (task,) = quality.grouped(rows())
    assert quality.judged(task.seconds, task) == pytest.approx((1, 1, 1))
    assert quality.judged(-task.seconds, task) == pytest.approx((-1, 0, 3))


def test_agreement_of_two_measurements() -> None:
    first = quality.grouped(rows())
    second = quality.grouped([attrs.evolve(row, seconds=1e-6 / row.seconds) for row in rows()])
    assert quality.agreement(first, second) == {"uir-ascend:910b2": (1, pytest.approx(-1))}
    assert quality.agreement(first, quality.grouped(rows(origin="b"))) == {}


def test_leaving_a_kernel_out_leaves_it_out_everywhere() -> None:
    (one,) = quality.grouped(rows())
    there = attrs.evolve(one, target="uir-bang:mlu370-x8")
    other = attrs.evolve(one, origin="b")
    assert quality.others(one, [one, there, other], same=False) == [other]
    assert quality.others(one, [one, there, attrs.evolve(other, target="t")], same=True) == []
