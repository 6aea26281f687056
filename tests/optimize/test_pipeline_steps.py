# SPDX-License-Identifier: Apache-2.0
"""The steps of a pipelined loop: every iteration of every part once, each at its step."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.optimize.pipeline_steps import LaggedPart, open_runs, runs


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=5), st.integers(1, 12))
def test_each_part_does_each_iteration_at_its_step(given_parts: list[tuple[int, bool]], extent: int) -> None:
    """In the order of the steps, and within a step in that of the parts; at most one run is steady."""
    parts = [LaggedPart(lag, [f"n{k}"] if busy else []) for k, (lag, busy) in enumerate(given_parts)]
    done = []
    made = runs(parts, extent)
    for run in made:
        assert run.count > 0 and run.parts
        for turn in range(run.count):
            done += [(part.nodes[0], first + turn) for part, first in run.parts]
    last = max(lag for lag, _ in given_parts) + extent
    wanted = [
        (part.nodes[0], step - part.lag)
        for step in range(last)
        for part in parts
        if part.nodes and 0 <= step - part.lag < extent
    ]
    assert done == wanted
    steady = [run for run in made if run.steady]
    lags = [part.lag for part in parts if part.nodes]
    assert [run.count for run in steady] == [
        n for n in [extent - (max(lags) - min(lags)) if lags else 0] if n > 0
    ]


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 12), st.integers(1, 12), st.booleans()
)
def test_a_loop_may_end_after_any_round(lags: list[int], extent: int, rounds: int, idle: bool) -> None:
    """Of as many rounds as the steady loop runs each part has done its iterations, and perhaps some ahead."""
    rounds = min(rounds, extent)
    parts = [LaggedPart(lag, [f"n{k}"]) for k, lag in enumerate(lags)] + [LaggedPart(3, [])] * idle
    *lead_in, steady = open_runs(parts, extent)
    assert steady.steady and steady.count == extent and not any(run.steady for run in lead_in)
    done = [
        (part.nodes[0], first + turn)
        for run in (*lead_in, steady)
        for turn in range(rounds if run is steady else run.count)
        for part, first in run.parts
    ]
    assert len(done) == len(set(done))
    for k, lag in enumerate(lags):
        own = [turn for name, turn in done if name == f"n{k}"]
        assert own == list(range(rounds + max(lags) - lag))
