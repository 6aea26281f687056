# SPDX-License-Identifier: Apache-2.0
"""Several conditions as one expression, and what its parts are."""

from __future__ import annotations

import itertools

from uir_tvm.igraph import var
from uir_tvm.igraph.all_positive import all_positive, parts_of
from uir_tvm.igraph.space import Size, Space

AT, J = var("i"), var("j")
N, M = var("n"), var("m")
SPACE = Space({"i": 4, "j": 3, "n": Size("n", 0, 4), "m": Size("m", 0, 3)})
CONDITIONS = [N - AT, M - J, 2 * N - 3 * J - 1]


def test_one_where_all_are_positive_else_less() -> None:
    joined = all_positive(CONDITIONS, SPACE)
    for i, j, n, m in itertools.product(range(4), range(3), range(5), range(4)):
        env = {"i": i, "j": j, "n": n, "m": m}
        holds = all(one.evaluate(env) > 0 for one in CONDITIONS)
        assert (joined.evaluate(env) == 1) is holds and (joined.evaluate(env) > 0) is holds


def test_its_parts_are_the_conditions() -> None:
    assert set(parts_of(all_positive(CONDITIONS, SPACE), SPACE)) == set(CONDITIONS)


def test_another_sum_of_quotients_is_its_only_part() -> None:
    """Positive also where one quotient is not at its greatest, or no sum of quotients alone."""
    for other in [N - AT, (N + 3) // 4 + (M + 2) // 3, (N - AT + 3) // 4 + M - 1, (N - AT + 3) // 4]:
        assert parts_of(other, SPACE) == [other]
