# SPDX-License-Identifier: Apache-2.0
"""Which task gets the next batch: the one where a second of tuning saves the model most.

What a batch may save of a task's time is expected from three things: what its last batches saved, how far its
best schedule is from its roofline (which is worth less with every trial that did not get there), and what the
cost model says of the candidates that come next.  That share of ``launches x best seconds``, over the seconds
that a batch takes, orders the tasks, as the gradient of Ansor's task scheduler does (Zheng et al., OSDI 2020,
section 6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from .task_record import TaskRecord


@attrs.frozen
class Chosen:
    """The task that gets the next batch.

    Parameters
    ----------
    state : TaskRecord
    rate : float
        Seconds that a run of the model is expected to save for each second of tuning.
    why : str
    """

    state: TaskRecord
    rate: float
    why: str


def choose(states: Sequence[TaskRecord]) -> Chosen | None:
    """Which task gets the next batch; None when all have stopped.

    Every task gets a first batch before another gets its second, the largest of the model first.
    """
    for state in states:
        state.stopped = state.stopped or state.why_stopped()
    alive = [state for state in states if not state.stopped]
    if not alive:
        return None
    total = total_seconds(states)
    new = [state for state in alive if not state.batches and not state.trials]
    if new:
        first = max(new, key=lambda state: state.seconds)
        return Chosen(first, _rate(first), f"its first batch; {_share(first, total)}")
    best = max(alive, key=_rate)
    return Chosen(best, _rate(best), _why(best, total))


def total_seconds(states: Iterable[TaskRecord]) -> float:
    """What all launches of all tasks take in a run of the model, by the best schedules."""
    return sum(state.seconds for state in states)


def _rate(state: TaskRecord) -> float:
    return state.seconds * state.expected_saving() / max(state.batch_seconds, 1e-3)


def _share(state: TaskRecord, total: float) -> str:
    return f"{state.seconds / total:.0%} of the kernels' time" if total else "no time known"


def _why(state: TaskRecord, total: float) -> str:
    said = [_share(state, total)]
    share = state.share_of_bound
    unknown = "beyond its roofline" if state.bound > 0 else "roofline not known"
    said.append(unknown if share is None else f"at {share:.0%} of its roofline")
    if state.batches:
        said.append(f"last batch saved {state.batches[-1].saved:.0%}")
    if state.promised is not None:
        said.append(f"the cost model expects {max(0.0, state.promised):.0%}")
    return ", ".join(said)
