# SPDX-License-Identifier: Apache-2.0
"""Scheduled functions whose outermost size is open: graphs with that size, right at any; what is refused."""

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
from tests.open_functions import OPEN


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


def test_open_columns_are_refused() -> None:
    n = tirx.Var("n", "int64")
    x = te.placeholder((8, n), "float32", "x")
    func = te.create_prim_func([x, te.compute((n, 8), lambda i, j: x[j, i], "y")])
    with pytest.raises(ExtractionError, match="shape") as error:
        extract(apply_default(func, hardware.get()), hardware.get())
    assert error.value.remedy


def test_two_sizes_that_do_not_go_together_are_refused() -> None:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = te.placeholder((n, m, 24), "float32", "x")
    func = te.create_prim_func([x, topi.transpose(x, (1, 0, 2))])
    with pytest.raises(ExtractionError):
        extract(apply_default(func, hardware.get()), hardware.get())


def test_a_serial_loop_of_open_length_is_refused() -> None:
    """A unit's loops have numbers: units that find nothing to do are what sizes add and take away."""
    hw: Any = hardware.get()
    sch = Schedule(OPEN["rows"].func())
    with pytest.raises(ExtractionError, match="no constant bound"):
        extract(sch.mod["main"], hw)


def test_a_range_beyond_64_bits_is_refused() -> None:
    func = with_sizes(OPEN["rows"].func(), {"n": Size("n", 0, 1 << 60)})
    with pytest.raises(ExtractionError, match="elements") as error:
        extract(apply_default(func, hardware.get()), hardware.get())
    assert error.value.remedy
