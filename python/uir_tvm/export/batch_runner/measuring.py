# SPDX-License-Identifier: Apache-2.0
"""Check a candidate, then time it: how results come about wherever something can be prepared and sampled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Refused(Exception):
    """A candidate that this machine does not take."""


def measure(
    prepare: Callable[[Mapping[str, Any]], tuple[Any, str]], candidate: Mapping[str, Any]
) -> dict[str, Any]:
    """The result of one candidate; whatever is wrong with it says so instead of a time.

    Parameters
    ----------
    prepare : callable
        Makes a candidate ready: what samples it, and a text that says what is wrong with what it computes.
    """
    return confirm(prepare, [candidate])[0]


def confirm(
    prepare: Callable[[Mapping[str, Any]], tuple[Any, str]], candidates: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Results of candidates that are timed in turns; every other round goes the other way round."""
    results: list[dict[str, Any]] = []
    ready: list[tuple[int, Any]] = []
    try:
        for candidate in candidates:
            try:
                loaded, fault = prepare(candidate)
            except Refused as error:
                results.append(result("refused", str(error)))
                continue
            results.append(result("wrong", fault) if fault else result("ok", ""))
            if loaded is not None:
                ready.append((len(results) - 1, loaded))
        repeats = max(int(candidate["settings"]["repeats"]) for candidate in candidates)
        for turn in range(repeats):
            for number, loaded in ready[:: -1 if turn % 2 else 1]:
                least = float(candidates[number]["settings"]["min_repeat_seconds"])
                results[number]["seconds"].append(loaded.sample(least))
                results[number]["said"] = loaded.note
    finally:
        for _, loaded in ready:
            loaded.free()
    return results


def result(outcome: str, said: str) -> dict[str, Any]:
    """A result without times."""
    return {"seconds": [], "outcome": outcome, "said": said}
