# SPDX-License-Identifier: Apache-2.0
"""The sizes at which graphs are run: the least, those around a tile, a prime; never too many elements."""

from __future__ import annotations

import pytest
from tvm import te, tirx
from uir_tvm.errors import EquivalenceError
from uir_tvm.igraph import parse_igraph
from uir_tvm.igraph.space import Size
from uir_tvm.verify import equivalent
from uir_tvm.verify.some_sizes import some_sizes

from tests.faults.sized_table import FAULTS, FLAT, PHASES, ROWS


def test_around_the_tile():
    found = [sizes["n"] for sizes in some_sizes(parse_igraph(ROWS))]
    assert {1, 3, 4, 5, 37} <= set(found) and len(found) == len(set(found))


def test_multiples_and_least_values_are_kept():
    graph = parse_igraph(FLAT)
    assert all(sizes["n"] % 32 == 0 and sizes["n"] >= 32 for sizes in some_sizes(graph))
    assert {32, 64, 96} <= {sizes["n"] for sizes in some_sizes(graph)}


def test_no_more_elements_than_allowed():
    graph = parse_igraph(ROWS)
    assert all(sizes["n"] * 16 <= 100 for sizes in some_sizes(graph, 100))
    assert some_sizes(graph.replace(sizes=[Size("n", 500, 1000)]), 100) == []


@pytest.mark.parametrize("text", [ROWS, FLAT, PHASES])
def test_a_graph_computes_what_it_computes(text):
    graph = parse_igraph(text)
    found = equivalent(graph, graph)
    assert found and found.cases > 4 and "sizes" in found.units


def test_another_value_is_told_with_its_size():
    wrong = ROWS.replace(
        "  move.reg.dram",
        "  unary.neg.fp32 b[0; (1,8); (8,1); rows :n / 5], b[0; (1,8); (8,1); rows :n / 5]\n  move.reg.dram",
    )
    with pytest.raises(EquivalenceError) as error:
        equivalent(parse_igraph(ROWS), parse_igraph(wrong))
    assert error.value.witness["n"] >= 5


def test_a_function_with_symbols_is_compared_at_the_same_sizes():
    n = tirx.Var("n", "int64")
    x = te.placeholder((n, 8), "float32", "x")
    right = te.create_prim_func([x, te.compute((n, 8), lambda i, j: te.exp(x[i, j]), "y")])
    wrong = te.create_prim_func([x, te.compute((n, 8), lambda i, j: te.exp(x[0, j]), "y")])
    assert equivalent(right, parse_igraph(ROWS)).methods == ("field", "values")
    with pytest.raises(EquivalenceError) as error:
        equivalent(wrong, parse_igraph(ROWS))
    assert error.value.witness["n"] > 1


def test_what_the_verifier_finds_late_is_not_compared_away():
    """A fault at the greatest size alone is the verifier's: no handful of sizes shows it."""
    fault = FAULTS["for the greatest n alone the last row is not written"]
    assert equivalent(parse_igraph(ROWS), fault.graph)


def test_nothing_to_compare_is_an_error():
    graph = parse_igraph(ROWS).replace(sizes=[Size("n", 1 << 20, 1 << 21)], num_groups=1 << 19)
    with pytest.raises(EquivalenceError, match="compared at no size"):
        equivalent(graph, graph)
