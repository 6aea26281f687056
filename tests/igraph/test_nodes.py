# SPDX-License-Identifier: Apache-2.0
"""Nodes compare by structure, survive JSON, and clamp valid boxes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from uir_tvm.errors import IGraphError
from uir_tvm.igraph import IGraph, IPointer, ISlice, Loop, from_json, make, map_iops, var

from .strategies import printable_igraphs


@settings(max_examples=25, deadline=None)
@given(printable_igraphs())
def test_json_round_trip(graph: IGraph) -> None:
    again = from_json(graph.to_json())
    assert again == graph
    assert hash(again) == hash(graph)


@pytest.mark.parametrize("text", ["", "{}", "[1, 2]", '{"nodes": 3}'])
def test_json_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(IGraphError):
        from_json(text)


def test_valid_box_is_clamped_into_the_shape() -> None:
    p = IPointer("a", "reg", "fp32", 64)
    s = ISlice(p, 0, (4, 8), rows=(var("pid") - 2, None), cols=(None, 11 - 3 * var("pid")))
    assert s.valid_box({"pid": 0}) == (0, 4, 0, 8)
    assert s.valid_box({"pid": 3}) == (1, 4, 0, 2)
    assert s.valid_box({"pid": 9}) == (4, 4, 0, 0)


def test_slices_differ_by_every_field() -> None:
    p = IPointer("a", "reg", "fp32", 64)
    s = ISlice(p, 0, (4, 8))
    changes = [
        {"pointer": IPointer("a", "reg", "fp32", 65)},
        {"offset": 1},
        {"shape": (4, 4)},
        {"stride": (8, 2)},
        {"rows": (0, None)},
        {"cols": (None, 8)},
    ]
    for change in changes:
        assert s.replace(**change) != s
    assert s.replace() == s


def test_map_iops_drops_keeps_and_expands() -> None:
    s = ISlice(IPointer("a", "reg", "fp32", 64), 0, (4, 8))
    one, two = make.unary("exp", s, s), make.unary("log", s, s)
    body = [one, Loop("i", 2, [two, one], {"unroll": 2})]
    assert map_iops(body, lambda op: op) == body
    assert map_iops(body, lambda op: None if op == one else [op, op]) == [
        Loop("i", 2, [two, two], {"unroll": 2})
    ]
