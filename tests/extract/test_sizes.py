# SPDX-License-Identifier: Apache-2.0
"""Scheduled functions with open sizes: graphs with these, right at any; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te, tirx, topi
from tvm.s_tir import Schedule
from uir_tvm import hardware
from uir_tvm.errors import ExtractionError
from uir_tvm.extract import extract
from uir_tvm.extract.roles import roles_of
from uir_tvm.igraph import IGraph, interpreter, var
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.schedule import apply_default

from tests.extracted import extracted
from tests.open_functions import INNER, OPEN


def graph_of(name: str, kind: str) -> IGraph:
    hw = hardware.get(None, kind)
    return extracted(apply_default(OPEN[name].func(), hw), hw)


#: All recipes for one kind; what tiles differ in for the others, which tests/conformance runs.
CASES = [(name, "cpu") for name in OPEN] + [
    (name, kind) for kind in ("cuda", "ascend", "bang") for name in ("rows", "product")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_the_graph_is_right_at_any_size(name: str, kind: str) -> None:
    """It has sizes and a number of groups that follows them, and computes what NumPy does."""
    function, graph = OPEN[name], graph_of(name, kind)
    assert [str(size.name).split("_times_") for size in graph.sizes] == [function.sizes]
    assert graph.groups is not None
    for n in (1, 2, 13):
        sizes = {"n": n, **({"m": n + 3} if "m" in function.sizes else {})}
        inputs = function.inputs(sizes)
        product = {
            str(s.name): int(np.prod([sizes[f] for f in str(s.name).split("_times_")])) for s in graph.sizes
        }
        (found,) = interpreter.run(graph, *inputs, sizes=product)
        want = function.reference(*(a.astype("float64") if a.dtype.kind == "f" else a for a in inputs))
        np.testing.assert_allclose(found, want.reshape(-1), rtol=1e-4, atol=1e-4)


@given(st.integers(0, 70))
@settings(max_examples=20, deadline=None)
def test_any_number_of_rows(n: int) -> None:
    graph, function = graph_of("layer norm", "cpu"), OPEN["layer norm"]
    inputs = function.inputs({"n": n})
    (found,) = interpreter.run(graph, *inputs, sizes={"n": n})
    np.testing.assert_allclose(found, function.reference(*inputs).reshape(-1), rtol=1e-4, atol=1e-4)


def test_what_a_graph_says_of_its_sizes() -> None:
    graph = graph_of("rows", "cpu")
    assert graph.pointer("x0").elements == var("n") * 96
    assert [p.role for p in graph.params] == ["in", "in", "out"]
    assert "n" in graph.groups.variables()


def test_roles() -> None:
    """Proved for all sizes: what is written whole is an output, what is changed in part is not."""
    assert roles_of(OPEN["rows"].func()) == ["in", "in", "out"]
    n = tirx.Var("n", "int64")
    x, y = te.placeholder((n, 8), "float32", "x"), te.placeholder((n, 8), "float32", "y")
    first = te.extern(
        [(n, 8)],
        [x, y],
        lambda ins, outs: tirx.For(
            (i := tirx.Var("i", "int64")), 0, n, tirx.ForKind.SERIAL,
            tirx.BufferStore(outs[0], ins[0][i, 0] + ins[1][i, 0], [i, 0]),
        ),
    )  # fmt: skip
    assert roles_of(te.create_prim_func([x, y, first])) == ["in", "in", "inout"]


#: A unit of a GPU has no room for the first tile of attention: tests/schedules/test_attention.py has others.
SEVERAL = [
    (kind, name)
    for kind in ("cpu", "cuda", "ascend", "bang")
    for name in INNER
    if (kind, name) != ("cuda", "attention")
]


@pytest.mark.parametrize(("kind", "name"), SEVERAL)
def test_several_open_sizes_have_one_graph(kind: str, name: str) -> None:
    """Strides that are products of sizes: proved for all of them, right at any."""
    function, hw = INNER[name], hardware.get(None, kind)
    graph = extracted(apply_default(function.func(), hw), hw)
    assert [str(size.name) for size in graph.sizes] == function.sizes
    for outer, inner in ((1, 1), (2, 7), (3, function.ranges[function.sizes[1]][1])):
        sizes = {function.sizes[0]: outer, function.sizes[1]: inner}
        inputs = function.inputs(sizes)
        (found,) = interpreter.run(graph, *inputs, sizes=sizes)
        np.testing.assert_allclose(found, function.reference(*inputs).reshape(-1), rtol=1e-4, atol=1e-4)


def test_open_columns() -> None:
    """The stride of the one is a size, that of the other a number."""
    n, hw = tirx.Var("n", "int64"), hardware.get()
    x = te.placeholder((8, n), "float32", "x")
    func = te.create_prim_func([x, te.compute((n, 8), lambda i, j: x[j, i], "y")])
    graph = extracted(apply_default(func, hw), hw)
    given = np.arange(24, dtype="float32").reshape(8, 3)
    (found,) = interpreter.run(graph, given, sizes={"n": 3})
    np.testing.assert_array_equal(found.reshape(3, 8), given.T)


def test_inner_sizes_without_an_upper_bound_are_refused() -> None:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = te.placeholder((n, m, 24), "float32", "x")
    func = te.create_prim_func([x, topi.transpose(x, (1, 0, 2))])
    with pytest.raises(ExtractionError, match="times|bound|elements") as error:
        extract(apply_default(func, hardware.get()), hardware.get())
    assert "bounds" in error.value.remedy


#: On a CPU and a GPU a unit takes one row.
TOGETHER = [(n, k) for n in ("transpose of two open dimensions", "heads last") for k in ("cpu", "cuda")]
TOGETHER += [("softmax of open rows", k) for k in ("ascend", "bang")]


@pytest.mark.parametrize(("name", "kind"), TOGETHER)
def test_rows_that_sizes_set_apart_are_one_tile(name: str, kind: str) -> None:
    hw = hardware.get(None, kind)
    graph = extracted(apply_default(INNER[name].func(), hw), hw)
    moves = [iop for iop, _ in graph.walk() if any(piece.open_strides for piece in iop.slices())]
    assert moves and all(iop.op == "move" and min(iop.target.shape) > 1 for iop in moves)


@pytest.mark.parametrize("kind", ["ascend", "bang"])
def test_tiles_of_moved_rows_lie_along_the_longer_side(kind: str) -> None:
    """All rows of a head at once, read as one run: no unit walks the open dimension."""
    hw = hardware.get(None, kind)
    graph = extracted(apply_default(INNER["heads last"].func(), hw), hw)
    assert graph.groups is not None and graph.groups.coefficient("b") * int(graph.num_units) == 3
    (load, store) = (iop for iop, loops in graph.walk() if not loops)
    assert load.op == store.op == "move" and load.target.shape == store.target.shape == (300, 8)
    assert load.sources[0].stride == (8, 1) and store.target.stride == (24, 1)


def test_units_share_a_dimension_that_they_walk() -> None:
    """Of 300 rows each of several units has every so many."""
    hw = hardware.get(None, "cuda")
    graph = extracted(apply_default(INNER["heads last"].func(), hw), hw)
    assert graph.groups is not None
    together = graph.groups.coefficient("b") * int(graph.num_units)
    (loop,) = {str(loop.var): loop for _, loops in graph.walk() for loop in loops}.values()
    assert together >= 16 and together * int(loop.extent) < 300 + together


def test_what_lies_apart_by_no_dimension_is_moved_one_by_one() -> None:
    """The stride of a diagonal is none of a dimension."""
    n = tirx.Var("n", "int64")
    func = te.create_prim_func(
        [x := te.placeholder((n, n), "float32", "x"), te.compute((n,), lambda i: x[i, i], "y")]
    )
    func = with_sizes(func, {"n": Size("n", 1, 1000)})
    with pytest.raises(ExtractionError, match="by itself") as error:
        extract(apply_default(func, hardware.get()), hardware.get())
    assert error.value.remedy


def test_an_element_that_is_looked_up_by_strides_of_sizes_is_refused() -> None:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x, at = te.placeholder((n, m), "float32", "x"), te.placeholder((8,), "int64", "at")
    func = te.create_prim_func([x, at, te.compute((8,), lambda i: x[at[i], 0], "y")])
    func = with_sizes(func, {"m": Size("m", 1, 100)})
    with pytest.raises(ExtractionError, match="strides depend on sizes"):
        extract(apply_default(func, hardware.get()), hardware.get())


def _behind_the_first_column(columns: Any) -> Any:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x, b = te.placeholder((n, columns(m)), "float32", "x"), te.placeholder((m,), "float32", "b")
    func = te.create_prim_func([x, b, te.compute((n, m), lambda i, j: x[i, j + 1] + b[j], "y")])
    return with_sizes(func, {"m": Size("m", 1, 100)})


def test_an_inner_dimension_that_is_an_expression_is_a_size() -> None:
    graph = extract(apply_default(_behind_the_first_column(lambda m: m + 1), hardware.get()), hardware.get())
    assert {str(size.name): (size.low, size.high) for size in graph.sizes if size.name != "n"} == {
        "m": (1, 100),
        "m_plus_1": (2, 101),
    }


def test_an_inner_dimension_that_is_not_affine_is_refused() -> None:
    with pytest.raises(ExtractionError, match="shape"):
        extract(apply_default(_behind_the_first_column(lambda m: m * m + 1), hardware.get()), hardware.get())


def test_a_serial_loop_of_open_length_is_refused() -> None:
    """A unit's loops have numbers: units that find nothing to do are what sizes add and take away."""
    hw: Any = hardware.get()
    sch = Schedule(OPEN["rows"].func())
    with pytest.raises(ExtractionError, match="as sizes decide"):
        extract(sch.mod["main"], hw)


def test_a_range_beyond_64_bits_is_refused() -> None:
    func = with_sizes(OPEN["rows"].func(), {"n": Size("n", 0, 1 << 60)})
    with pytest.raises(ExtractionError, match="elements") as error:
        extract(apply_default(func, hardware.get()), hardware.get())
    assert error.value.remedy
