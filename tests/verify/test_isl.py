# SPDX-License-Identifier: Apache-2.0
"""Bounds of sets are exact where quotients and remainders leave holes."""

from __future__ import annotations

import itertools

import islpy
import pytest
from uir_tvm.verify import isl


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
