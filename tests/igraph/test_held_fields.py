# SPDX-License-Identifier: Apache-2.0
"""Fields of nodes are read from C++ once, and are what C++ holds."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi.structural import structural_equal
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, Loop, make
from uir_tvm.igraph.affine import affine, var
from uir_tvm.igraph.nodes import HardwareModel
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.text import print_igraph


def _graph() -> IGraph:
    hardware = HardwareModel("h", "cpu", 2, 1, 4096, 0, 32, {"line_bytes": 64})
    source, target = IPointer("x", "dram", "fp32", 64, "in"), IPointer("y", "dram", "fp32", 64, "out")
    held = IPointer("r", "reg", "fp32", 8, "tmp")
    there = ISlice(source, var("pid") * 32 + var("i") * 8, (1, 8), cols=(0, 8 - var("i")))
    back = ISlice(target, var("pid") * 32 + var("i") * 8, (1, 8))
    inside = ISlice(held, 0, (1, 8))
    body = [
        make.move(inside, there),
        IOp("unary", "exp", "fp32", [inside], [inside]),
        make.move(back, inside),
    ]
    loop = Loop("i", 4, body, {"unrolled": True})
    return IGraph("g", hardware, 2, 1, [source, target, held], [loop], {"told": "kept"}, [Size("n", 1, 9)])


def _fields(node: Any) -> list[Any]:
    return [getattr(node, name) for name in type(node).__annotations__]


def _walked(node: Any) -> list[Any]:
    """The node and all nodes beneath it."""
    beneath = [each for value in _fields(node) for each in (value if isinstance(value, tuple) else (value,))]
    return [node, *(n for each in beneath if isinstance(each, tvm_ffi.Object) for n in _walked(each))]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))])
def test_what_is_held_is_what_another_object_reads(again: Callable[[Any], Any]) -> None:
    """A copy holds nothing yet: its fields come from C++, those of the graph from its constructor."""
    graph = _graph()
    read = again(graph)
    assert not vars(read) and vars(graph)
    assert print_igraph(read) == print_igraph(graph)
    assert len(_walked(read)) == len(_walked(graph)) > 30
    for mine, theirs in zip(_walked(graph), _walked(read), strict=True):
        assert type(mine) is type(theirs)
        for own, other in zip(_fields(mine), _fields(theirs), strict=True):
            assert type(own) is type(other) and structural_equal(own, other)


def test_a_field_is_read_once() -> None:
    """Elements are made once, so that what they hold stays with them."""
    read = copy.copy(_graph())
    (loop,) = read.body
    assert read.body[0] is loop and loop.body is read.body[0].body
    assert loop.body[0].sources[0].offset is loop.body[0].sources[0].offset


def test_nodes_refuse_to_be_changed() -> None:
    graph = _graph()
    with pytest.raises(AttributeError, match="immutable"):
        graph.body[0].body[0].op = "fill"
    with pytest.raises(AttributeError, match="immutable"):
        graph.sizes[0].low = 2
    for change in (
        lambda attrs: attrs.update(more=1),
        lambda attrs: attrs.pop("told"),
        lambda attrs: attrs.__setitem__("told", "other"),
        lambda attrs: attrs.setdefault("more", 1),
        lambda attrs: attrs.clear(),
    ):
        with pytest.raises(TypeError, match="immutable"):
            change(graph.attrs)
    assert dict(graph.attrs) == {"told": "kept"}


def test_attributes_that_were_read_make_another_node() -> None:
    """C++ takes what is held for a map again."""
    graph = _graph()
    other = HardwareModel("h", "cpu", 2, 1, 4096, 0, 32, graph.hardware.figures)
    assert other == graph.hardware
    loop = graph.body[0]
    assert Loop(loop.var, loop.extent, loop.body, loop.attrs) == loop


def test_expressions_hold_their_text() -> None:
    made = var("i") * 8 + 3
    assert (
        str(made) == str(copy.copy(made)) and hash(made) == hash(copy.copy(made)) and made == copy.copy(made)
    )
    assert affine(7) == 7 and hash(affine(7)) == hash(7) and made != affine(7)
