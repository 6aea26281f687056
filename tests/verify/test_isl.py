# SPDX-License-Identifier: Apache-2.0
"""Bounds of sets are exact where quotients and remainders leave holes."""

from __future__ import annotations

import itertools

import islpy
import pytest
from uir_tvm.verify import isl


def test_only_spent_operations_are_exhaustion() -> None:
    """A question that isl does not understand has no answer by more effort, and is not passed over."""

    def hard() -> islpy.Set:
        return islpy.Set.read_from_str(
            isl.context(), "{ [a, b] : exists i, j : a = 3i + 5j and b = i mod 7 }"
        )

    with pytest.raises(isl.Exhausted):
        isl.bounded(hard, max_operations=40)
    assert not isl.bounded(hard).is_empty()

    def malformed() -> bool:
        return islpy.Set.read_from_str(isl.context(), "{ [a : }").is_empty()

    for ask in (lambda: isl.bounded(malformed), lambda: isl.proved(malformed)):
        with pytest.raises(isl.IslError, match="refuses a question"):
            ask()
    assert isl.proved(lambda: True), "the context serves on"


@pytest.mark.parametrize("first,second,split", list(itertools.product((1, 2, 3), (2, 4), (2, 3))))
def test_bounds_of_those_that_reach_an_element(first: int, second: int, split: int) -> None:
    """Owners of an address: isl's own bound of one coordinate names units that do not reach it."""

    def relation(coefficient: int) -> islpy.Map:
        return islpy.Map.read_from_str(
            isl.context(),
            "{ [p] -> [a] : exists i, j : 0 <= p < 4 and 0 <= i < 3 and 0 <= j < 3 and i < 3 - floor(p/2) "
            f"and a = {coefficient}*floor(p/{split}) + {first}*(p mod {split}) + {second}*i + 3*j }}",
        )

    owners = relation(2).union(relation(3)).reverse()
    for element in range(12):
        units = owners.intersect_domain(islpy.Set.read_from_str(isl.context(), f"{{ [{element}] }}")).range()
        reached = {
            p
            for c, p, i, j in itertools.product((2, 3), range(4), range(3), range(3))
            if i < 3 - p // 2 and element == c * (p // split) + first * (p % split) + second * i + 3 * j
        }
        assert units.is_empty() == (not reached)
        if reached:
            assert (isl.minimum(units), isl.maximum(units)) == (min(reached), max(reached))
