# SPDX-License-Identifier: Apache-2.0
"""Live ranges: first and last iOp, and the iOp in which a value is born or dies, counted by hand."""

from __future__ import annotations

import pytest
from uir_tvm.verify.access import GraphFacts
from uir_tvm.verify.live_ranges import lives

from .test_capacity import add, build, fill, loop

# body -> name -> (first, last, born, dying)
CASES = {
    "straight": (
        fill("a") + add("b", "a", "a") + add("c", "a", "b"),
        {"a": (0, 2, 0, 2), "b": (1, 2, 1, 2), "c": (2, 2, 2, None)},
    ),
    "in place": (fill("a") + add("a", "a", "a") + add("b", "a", "a"), {"a": (0, 2, 0, 2)}),
    "inside of a loop": (
        loop("k", fill("a") + add("b", "a", "a") + add("c", "b", "b")) + fill("d"),
        {"a": (0, 1, 0, 1), "b": (1, 2, 1, 2), "c": (2, 2, 2, None), "d": (3, 3, 3, None)},
    ),
    "into a loop, whose every iteration reads it": (
        fill("a") + loop("k", add("b", "a", "a") + fill("c")),
        {"a": (0, 2, 0, None), "b": (1, 1, 1, None)},
    ),
    "out of a loop": (
        loop("k", fill("c") + fill("a")) + add("b", "a", "a"),
        {"a": (0, 2, None, 2), "c": (0, 0, 0, None)},
    ),
    "an accumulator": (
        fill("a") + loop("k", fill("b") + add("a", "a", "b")) + add("c", "a", "a"),
        {"a": (0, 3, 0, 3), "b": (1, 2, 1, 2)},
    ),
    "carried around a loop": (
        fill("b") + loop("k", fill("d") + add("c", "b", "d") + fill("b")),
        {"b": (0, 3, 0, None), "c": (2, 2, 2, None), "d": (1, 2, 1, 2)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ranges(name):
    body, expected = CASES[name]
    found = {x.name: (x.first, x.last, x.born, x.dying) for x in lives(GraphFacts(build(body)), "reg")}
    assert {name: found[name] for name in expected} == expected
