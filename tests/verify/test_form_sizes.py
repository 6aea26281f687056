# SPDX-License-Identifier: Apache-2.0
"""Sizes have names of their own and values; dimensions and groups speak of nothing else."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IPointer, affine, parse_igraph, var
from uir_tvm.igraph.space import Size
from uir_tvm.verify import check

from tests.faults.sized_table import ROWS


def _changed(**changes):
    return parse_igraph(ROWS).replace(**changes)


def _what(graph):
    found = check(graph)
    assert {fault.rule for fault in found} == {"form"}
    return found[0].what


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        ([Size("n", 1, 1000), Size("n", 1, 1000)], "2 sizes are named 'n'"),
        ([Size("n", 1, 1000), Size("pid", 1, 4)], "the number of the unit"),
        ([Size("n", 1000, 1)], "admits no value"),
        ([Size("n", 9, 15, 8)], "admits no value"),
        ([Size("n", -1, 1000)], "may be negative"),
        ([Size("n", 1, 1000, 0)], "a multiple of 0"),
        ([Size("n", 1, 1 << 62)], "may reach"),
    ],
)
def test_sizes_that_are_none(sizes, what):
    assert what in _what(_changed(sizes=sizes))


def test_the_name_of_a_loop_is_taken():
    text = ROWS.replace("  move.dram", "  for n in 1 {\n  move.dram", 1).replace(
        "rows :n - 4*pid]\n  unary", "rows :n - 4*pid]\n  }\n  unary", 1
    )
    assert "the name of a loop variable" in _what(parse_igraph(text))


def test_groups_are_expressions_of_sizes():
    assert "which is no size" in _what(_changed(groups=var("m")))
    assert "up to 1000 groups" in _what(_changed(groups=var("n")))
    groups = (var("n") + 3) // 4 - 2
    assert "may be negative" in _what(_changed(groups=groups, num_groups=248))


def test_dimensions_are_of_dram_and_as_large_as_they_say():
    graph = parse_igraph(ROWS)
    other = [p for p in graph.pointers if p.name != "a"]
    a = IPointer("a", "reg", "fp32", 8000, "tmp", [var("n"), affine(8)])
    assert "lies in reg" in _what(graph.replace(pointers=[*other, a]))
    z = IPointer("z", "dram", "fp32", 800, "tmp", [var("n"), affine(8)])
    assert "up to 8000 elements" in _what(graph.replace(pointers=[*graph.pointers, z]))
    squared = IPointer("z", "dram", "fp32", 10**6, "tmp", [var("n") * var("n")])
    assert "product of sizes" in _what(graph.replace(pointers=[*graph.pointers, squared]))


def test_a_dimension_is_negative_only_if_some_size_makes_it_so():
    graph = parse_igraph(ROWS)

    def with_dim(dim, size):
        return graph.replace(pointers=[*graph.pointers, IPointer("z", "dram", "fp32", size, "tmp", [dim])])

    (fault,) = check(with_dim(var("n") - 2, 998))
    assert fault.witness == {"n": 1}
    assert check(with_dim(var("n") - (var("n") + 1) // 2, 999)) == []
