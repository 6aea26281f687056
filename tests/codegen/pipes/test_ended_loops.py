# SPDX-License-Identifier: Apache-2.0
"""Loops that sizes end: however many rounds they have, nothing races, and no flag is left up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from uir_tvm.igraph import var

from .kernel import Data, at, lines, loop, op, plan
from .simulator import findings

H, K = var("h"), var("k")
FACTOR, SUM, OUT = at(0, 32), at(32, 32), at(64, 32)


def ending(name: str, *body: Data) -> Data:
    return {**loop(name, 4, *body), "ends": True}


def sums(around: Any, within: Any) -> list[Data]:
    """Each round of h sums what the rounds of k load; what was there before is stored behind both."""
    return [
        op("V", [OUT], [], "before"),
        around(
            "h",
            op("V", [SUM], [], "begin"),
            within("k", op("MTE2", [FACTOR], [at(128 * H + 32 * K, 32, "x")]), op("V", [SUM], [SUM, FACTOR])),
            op("MTE3", [at(32 * H, 32, "y")], [SUM]),
        ),
        op("MTE3", [at(0, 32, "z")], [OUT], "behind"),
    ]


def of_rounds(body: Any, rounds: dict[str, int]) -> list[Data]:
    """A planned body of which some loops have so many rounds."""
    out = []
    for node in map(dict, body):
        if "body" in node:
            node["body"] = of_rounds(node["body"], rounds)
        if str(node["kind"]) == "loop":
            node["extent"] = rounds.get(str(node["var"]), node["extent"])
        out.append(node)
    return out


def whole(name: str, *body: Data) -> Data:
    return loop(name, 4, *body)


@pytest.mark.parametrize("vocabulary", ["ascend", "bang"])
@pytest.mark.parametrize(
    ("around", "within"), [(ending, ending), (whole, ending), (ending, whole)], ids=["both", "inner", "outer"]
)
def test_any_number_of_rounds(around: Any, within: Any, vocabulary: str) -> None:
    pipes = {"MTE2": "IO", "MTE3": "IO", "V": "COMPUTE"} if vocabulary == "bang" else {}
    body = _renamed(sums(around, within), pipes)
    planned = plan(*body, vocabulary=vocabulary)
    for h, k in itertools.product(range(4), repeat=2):
        rounds = {**({"h": h} if around is ending else {}), **({"k": k} if within is ending else {})}
        shorter = {**planned, "body": of_rounds(planned["body"], rounds)}
        assert findings(body, shorter) == [], (rounds, lines(planned))


def test_a_loop_of_fixed_rounds_would_race_without_them() -> None:
    """What a plan for all rounds orders by a flag in the loop, nothing orders where there is no round."""
    body = sums(whole, whole)
    planned = plan(*body)
    assert findings(body, planned) == []
    assert findings(body, {**planned, "body": of_rounds(planned["body"], {"k": 0})}) != []


def test_the_report_numbers_each_sync_once() -> None:
    planned = plan(*sums(ending, ending))
    numbers = [int(one["number"]) for one in planned["report"]]
    assert numbers == list(range(1, len(numbers) + 1))
    told = {int(line.rsplit("#", 1)[1]) for line in lines(planned) if "#" in line}
    assert told == set(numbers)
    assert not any("set" in line or "wait" in line for line in lines(planned))


def _renamed(body: list[Data], pipes: dict[str, str]) -> list[Data]:
    out = []
    for node in map(dict, body):
        if "body" in node:
            node["body"] = _renamed(node["body"], pipes)
        if "pipe" in node:
            node["pipe"] = pipes.get(node["pipe"], node["pipe"])
        out.append(node)
    return out
