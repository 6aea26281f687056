# SPDX-License-Identifier: Apache-2.0
"""Strides that sizes decide: in text, JSON and the interpreter; what the verifier refuses of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from uir_tvm.igraph import ISlice, from_json, interpreter, parse_igraph, var
from uir_tvm.igraph.coordinates import step_along, stride_of
from uir_tvm.igraph.nodes import OPEN_STRIDE
from uir_tvm.igraph.sizes import at
from uir_tvm.verify import check

from tests.faults.sized_table import TURNED

N, M = var("n"), var("m")


def test_text_and_json_give_the_graph_back() -> None:
    graph = parse_igraph(TURNED)
    assert parse_igraph(str(graph)) == graph
    assert from_json(graph.to_json()) == graph
    load, store = (iop for iop, _ in graph.walk())
    assert load.sources[0].stride == (M, 1) and store.target.stride == (1, N)
    assert load.sources[0].row_stride == OPEN_STRIDE and store.target.open_strides
    assert "(m,1)" in str(graph) and "(1,n)" in str(graph)


def test_strides_at_sizes_are_numbers() -> None:
    graph = parse_igraph(TURNED)
    static = at(graph, {"n": 5, "m": 7})
    load, store = (iop for iop, _ in static.walk())
    assert load.sources[0].stride == (7, 1) and store.target.stride == (1, 5)
    assert not check(static) and not check(graph)
    x = np.arange(35, dtype="float32").reshape(5, 7)
    (found,) = interpreter.run(graph, x, sizes={"n": 5, "m": 7})
    np.testing.assert_array_equal(found.reshape(7, 5), x.T)


def test_an_expression_without_sizes_is_a_number() -> None:
    pointer = parse_igraph(TURNED).pointer("x")
    piece = ISlice(pointer, 0, (2, 2), (N - N + 4, 1))
    assert piece.stride == (4, 1) and not piece.open_strides
    assert piece.replace(stride=(M, 1)) != piece.replace(stride=(N, 1))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("x[4*m*pid; (4,128); (m,1)", "x[4*m*pid; (4,128); (n,1)", "rows .* are n apart"),
        ("x[4*m*pid; (4,128); (m,1)", "x[4*m*pid; (4,128); (m + 1,1)", "apart"),
        ("x[4*m*pid; (4,128); (m,1)", "x[4*m*pid; (4,128); (-m,1)", "apart"),
        ("y[4*pid; (4,128); (1,n)", "y[4*pid; (4,128); (1,m)", "columns .* are m apart"),
        (
            "a[0; (4,128); (128,1); rows :n - 4*pid; cols :m], x",
            "a[0; (4,128); (m,1)], x",
            "of 'a' are m apart",
        ),
    ],
)
def test_strides_of_no_dimension_are_refused(old: str, new: str, what: str) -> None:
    assert old in TURNED
    faults = check(parse_igraph(TURNED.replace(old, new)))
    assert faults and faults[0].rule == "form" and re.search(what, str(faults[0]))


def test_only_moves_and_tables_have_them() -> None:
    text = TURNED.replace("  move.reg.dram.fp32 y[", "  unary.exp.fp32 y[")
    (fault, *_) = check(parse_igraph(text))
    assert fault.rule == "form" and "apart" in str(fault)


def test_the_dimension_of_a_stride() -> None:
    dims = (3 * N, M, M)
    assert step_along(M, dims) == (1, 1) and step_along(5 * M, dims) == (1, 5)
    assert step_along(M * M * 2, dims) == (0, 2) and step_along(var("n") * 0 + 7, dims) == (2, 7)
    assert step_along(N, dims) is None and step_along(M + 1, dims) is None
    assert stride_of(4 * M * var("i") + var("i") + var("j"), "i") == 4 * M + 1
    assert stride_of(M * (var("i") // 2), "i") is None and stride_of(M * var("j"), "i") == 0
