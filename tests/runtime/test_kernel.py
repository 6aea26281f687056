# SPDX-License-Identifier: Apache-2.0
"""One iGraph without a model around it: with sizes, on every target, and what is refused by type."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.errors import ShapeError, SizeError
from uir_tvm.igraph import IGraph, IPointer, ISlice, interpreter, make, var
from uir_tvm.igraph.sizes import at, dram
from uir_tvm.igraph.space import Size
from uir_tvm.runtime.kernel import build_igraph, run_igraph, signature_of
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import verify

WIDTH = 8


def graph_of(target: str) -> IGraph:
    """The negative of ``n`` rows, with as many elements added to what was there."""
    n, pid = Size("n", 1, 30, 1), var("pid")
    x = dram("x", "fp32", [n.expr, WIDTH], [n], "in")
    y = dram("y", "fp32", [n.expr, WIDTH], [n], "out")
    total = dram("total", "fp32", [n.expr, WIDTH], [n], "inout")
    tiles = [IPointer(name, "reg", "fp32", 4 * WIDTH, "tmp") for name in "abc"]
    box = {"rows": (None, n.expr - 4 * pid)}
    a, b, c = (ISlice(tile, 0, (4, WIDTH), **box) for tile in tiles)
    there = {p: ISlice(p, 4 * WIDTH * pid, (4, WIDTH), **box) for p in (x, y, total)}
    body = [
        make.move(a, there[x]),
        make.unary("neg", b, a),
        make.move(there[y], b),
        make.move(c, there[total]),
        make.binary("add", c, c, a),
        make.move(there[total], c),
    ]
    hw = hardware.get(None, TARGETS[target].kind)
    groups = (n.expr + 3) // 4
    return IGraph("rows", hw, 8, 1, [x, y, total, *tiles], body, {}, [n], groups)


def arrays_of(n: int) -> list[np.ndarray]:
    return [np.random.default_rng(n + k).standard_normal((n, WIDTH), "float32") for k in range(2)]


@pytest.mark.parametrize("target", TARGETS)
def test_one_executable_for_every_size(target: str) -> None:
    graph = graph_of(target)
    verify(graph)
    built = build_igraph(graph, target)
    for n in (1, 2, 3, 4, 5, 29, 30):
        arrays = arrays_of(n)
        found = run_igraph(graph, target, *arrays, sizes={"n": n}, built=built)
        wanted = interpreter.run(graph, *arrays, sizes={"n": n})
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got, want.reshape(-1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("sizes", "words"),
    [({}, "no size"), ({"n": 31}, "n is 31"), ({"n": 0}, "n is 0"), ({"n": 3, "m": 2}, "m, n")],
)
def test_sizes_that_are_not_admitted(target: str, sizes: dict[str, int], words: str) -> None:
    with pytest.raises(SizeError, match=words) as caught:
        run_igraph(graph_of(target), target, *arrays_of(3), sizes=sizes, built=object())
    assert caught.value.need


def test_arrays_have_the_elements_of_the_sizes() -> None:
    with pytest.raises(ShapeError, match="`x` has 24 elements") as caught:
        run_igraph(graph_of("uir-cpu"), "uir-cpu", *arrays_of(3), sizes={"n": 4}, built=object())
    assert "32 elements" in caught.value.need


def test_a_static_graph_takes_no_sizes() -> None:
    graph = at(graph_of("uir-cpu"), {"n": 3})
    arrays = arrays_of(3)
    assert len(run_igraph(graph, "uir-cpu", *arrays)) == 2
    with pytest.raises(SizeError, match="values for n") as caught:
        run_igraph(graph, "uir-cpu", *arrays, sizes={"n": 3})
    assert "static" in caught.value.need


def test_the_signature_ends_with_the_sizes() -> None:
    params = signature_of(graph_of("uir-cpu")).params
    assert [str(param.name) for param in params] == ["x", "y", "total", "n"]
    assert str(params[0].shape[0].name) == "x_elements"
