# SPDX-License-Identifier: Apache-2.0
"""Graphs with sizes: text, JSON, what they are at given sizes, and what they compute there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.errors import IGraphError, ParseError
from uir_tvm.igraph import affine, from_json, parse_igraph, print_igraph, var
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.sizes import at, checked_sizes, dram
from uir_tvm.igraph.space import Size

HARDWARE = """
hardware h {
  kind = cpu
  num_groups = 4
  num_units = 1
  reg_bytes = 4096
  sram_bytes = 0
  vector_bytes = 32
}
"""
ROWS = 4
#: y = exp(x) on n rows of 8, four rows a unit; the last unit has what is left.
TEXT = f"""{HARDWARE}
igraph rows on h parallel (((n + 3) / 4), 1) {{
  size n = [0, 1000]
  x = iPointer(dram, fp32, (n, 8), in)
  y = iPointer(dram, fp32, (n, 8), out)
  a = iPointer(reg, fp32, 32)
  b = iPointer(reg, fp32, 32)
  move.dram.reg.fp32 a[0; (4,8); (8,1); rows :n - 4*pid], x[32*pid; (4,8); (8,1); rows :n - 4*pid]
  unary.exp.fp32 b[0; (4,8); (8,1); rows :n - 4*pid], a[0; (4,8); (8,1); rows :n - 4*pid]
  move.reg.dram.fp32 y[32*pid; (4,8); (8,1); rows :n - 4*pid], b[0; (4,8); (8,1); rows :n - 4*pid]
}}
"""


@pytest.fixture(scope="module")
def graph():
    return parse_igraph(TEXT)


def test_text_and_json_are_read_back(graph):
    assert parse_igraph(print_igraph(graph)) == graph
    assert from_json(graph.to_json()) == graph
    assert "size n = [0, 1000]" in print_igraph(graph)
    assert "x = iPointer(dram, fp32, (n, 8), in)" in print_igraph(graph)
    assert "parallel (((n + 3) / 4), 1)" in print_igraph(graph)


def test_greatest_values(graph):
    assert graph.num_groups == 250
    assert graph.parallel == (var("n") + 3) // 4
    assert graph.pointer("x").size == 8000
    assert graph.pointer("x").elements == var("n") * 8
    assert graph.pointer("a").elements == affine(32)


@settings(deadline=None)
@given(st.integers(0, 40))
def test_equals_exp_at_any_size(n):
    graph = parse_igraph(TEXT)
    x = np.linspace(-1, 1, n * 8, dtype=np.float32)
    (y,) = run(graph, x, sizes={"n": n})
    np.testing.assert_allclose(y, np.exp(x), rtol=3e-7)


def test_at_is_static(graph):
    static = at(graph, {"n": 9})
    assert (static.num_groups, static.sizes, static.groups) == (3, (), None)
    assert static.pointer("y").size == 72
    assert not static.pointer("y").dims
    assert parse_igraph(print_igraph(static)) == static
    assert at(static, {}) is static


@pytest.mark.parametrize("sizes", [{}, {"n": 1001}, {"n": -1}, {"m": 4}, {"n": 4, "m": 4}])
def test_sizes_that_a_graph_does_not_take(graph, sizes):
    with pytest.raises(IGraphError) as error:
        checked_sizes(graph, sizes)
    assert error.value.need


def test_divisors_of_sizes():
    graph = parse_igraph(TEXT.replace("[0, 1000]", "[0, 1000, 4]"))
    assert "size n = [0, 1000, 4]" in print_igraph(graph)
    with pytest.raises(IGraphError, match="multiple of 4"):
        at(graph, {"n": 6})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("size n = [0, 1000]", "", "no size of the graph"),
        ("(n, 8), in", "(m, 8), in", "no size of the graph"),
        ("size n = [0, 1000]", "size n = [0, 1000]\n  size n = [0, 7]", "two sizes"),
        ("size n = [0, 1000]", "size n = [0, 9223372036854775807]", "64 bits"),
        ("size n = [0, 1000]", "size n = [0]", "range of a size"),
    ],
)
def test_malformed_texts(old, new, message):
    with pytest.raises(ParseError, match=message):
        parse_igraph(TEXT.replace(old, new, 1))


def test_dram_pointers():
    n = Size("n", 1, 10)
    assert dram("x", "fp32", [n.expr, 8], [n], "in").size == 80
    assert not dram("x", "fp32", [3, 8], [n], "in").dims
    with pytest.raises(IGraphError, match="up to"):
        huge = Size("n", 1, 1 << 40)
        dram("x", "fp32", [huge.expr, huge.expr], [huge], "in")
    assert dram("x", "fp32", [n.expr, n.expr], [n], "in").elements == n.expr * n.expr
