# SPDX-License-Identifier: Apache-2.0
"""A model that leaves sizes open is explained for all of them, and at some."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
import uir_tvm
from tvm import relax, te, tirx
from uir_tvm.errors import ShapeError, SizeError
from uir_tvm.explain import explain, render
from uir_tvm.explain.call_sizes import sizes_at_call
from uir_tvm.explain.program_figures import graph_at, program_figures
from uir_tvm.sizes.symbolic_shapes import value_of

from tests.asked import asked
from tests.kernel_graph.programs import constant, module

op = relax.op
SIZES = {"b": 3, "n": 10}


def rows(target: str) -> Any:
    """A product, and an activation of (b, n, 8), of which both are open."""
    b, n = tirx.Var("b", "int64"), tirx.Var("n", "int64")
    mod = module(
        {"x": ((b, n, 8), "float32")}, lambda emit, x: emit(op.exp(emit(op.matmul(x, constant(8, 6)))))
    )
    return uir_tvm.compile(mod, target, name="rows")


@pytest.fixture(
    scope="module",
    params=asked(["uir-cuda", "uir-bang"], ["uir-cpu", "uir-cuda", "uir-ascend", "uir-bang"]),
)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return uir_tvm.load(rows(request.param).save(tmp_path_factory.mktemp("rows") / "rows.uir"))


def test_a_report_has_what_moves_for_all_sizes(loaded: Any) -> None:
    """(b, n, 8) and (8, 6) are read and (b, n, 6) written by the product, read and written by the kernel."""
    (program,) = loaded.report()["programs"]
    figures = program["figures"]
    assert figures["input_bytes"] == "32*b*n" and figures["output_bytes"] == "24*b*n"
    assert figures["library_operations"] == "96*b*n" and figures["weight_bytes"] >= 192
    assert figures["bytes"] in ("104*b*n + 192", "56*b*n + 192"), "the second where the library computes exp"


def test_it_is_explained_at_sizes_and_for_all(loaded: Any) -> None:
    exe, numbers = loaded.whole_at(SIZES)
    found = explain(exe, sizes=numbers)
    assert found.symbols is not None and found.symbols.sizes == SIZES
    (kernel,), (work,) = found.kernels, found.library
    assert kernel.graph is not None and kernel.graph.symbols is not None and kernel.graph.sizes == SIZES
    symbols = kernel.graph.symbols
    assert symbols.dram_bytes == "48*b*n" and set(symbols.pointers.values()) == {"24*b*n"}
    assert kernel.graph.traffic.dram_bytes == value_of(symbols.dram_bytes, SIZES) == 48 * 30
    assert kernel.graph.groups == value_of(symbols.groups, SIZES)
    assert (work.flops, work.bytes) == (96 * 30, 4 * (30 * 8 + 48 + 30 * 6))
    text = render(found)
    assert "at b = 3, n = 10" in text and "bytes = 104*b*n + 192" in text and "bytes = 48*b*n" in text
    assert json.loads(json.dumps(found.to_json()))["symbols"]["library_operations"] == "96*b*n"


def test_sizes_that_it_does_not_serve(loaded: Any) -> None:
    with pytest.raises(ShapeError, match="no size 'm'"):
        loaded.whole_at({"m": 3})


def test_one_kernel_by_itself(tmp_path: pathlib.Path) -> None:
    n = tirx.Var("n", "int64")
    x = te.placeholder((n, 96), name="x")
    func = te.create_prim_func([x, te.compute((n, 96), lambda i, j: te.exp(x[i, j]), "y")])
    func = func.with_attr("uir.sizes", {"n": [4, 64, 4]})
    exe = uir_tvm.load(uir_tvm.compile(func, "uir-ascend").save(tmp_path / "kernel.uir"))
    whole, numbers = exe.whole_at({"n": 8})
    (kernel,) = explain(whole, sizes=numbers).kernels
    assert kernel.graph is not None and kernel.graph.symbols is not None
    assert kernel.graph.symbols.dram_bytes == "768*n" and kernel.graph.traffic.dram_bytes == 768 * 8
    for size, need in ((6, "n % 4 == 0"), (68, "n <= 64")):
        with pytest.raises(SizeError) as error:
            exe.whole_at({"n": size})
        assert need in error.value.need + str(error.value), size


def test_a_graph_in_numbers() -> None:
    """A convolution that strides: rows round down."""
    conv = {
        "input": ["b", 3, "n", 9],
        "weight": [8, 3, 3, 3],
        "strides": [2, 2],
        "padding": [1, 1, 1, 1],
        "dilation": [1, 1],
    }
    row = {"dtype": "float32", "constant": False}
    graph = {
        "summary": {"bytes_after": "108*b*n + 160*b*div(n + 1, 2)"},
        "inputs": ["x"],
        "outputs": [{"tensor": "y"}],
        "tensors": [
            {"name": "x", "shape": ["b", 3, "n", 9], "bytes": "108*b*n", **row},
            {
                "name": "y",
                "shape": ["b", 8, "div(n - 1, 2) + 1", 5],
                "bytes": "160*b*(div(n - 1, 2) + 1)",
                **row,
            },
        ],
        "nodes": [
            {
                "type": "library",
                "kind": "conv2d",
                "attrs": conv,
                "inputs": ["x"],
                "outputs": ["y"],
                "ops": ["conv2d"],
            }
        ],
        "why_not": [{"saved_bytes": "4*b*n"}],
    }
    found = program_figures(graph, SIZES)
    operations = 2 * 3 * 8 * 3 * 9 * 5 * 5
    assert (
        value_of(found.library_operations, SIZES) == operations
        and value_of(found.bytes, SIZES) == 108 * 30 + 160 * 15
    )
    numbers = graph_at(graph, SIZES)
    assert numbers["tensors"][1]["shape"] == [3, 8, 5, 5] and numbers["tensors"][1]["bytes"] == 2400
    assert (
        numbers["nodes"][0]["attrs"]["input"] == [3, 3, 10, 9] and numbers["why_not"][0]["saved_bytes"] == 120
    )


def test_sizes_of_a_kernel_at_a_call() -> None:
    own = [["s0", "s1", 64], ["size0", None]]
    found = sizes_at_call(["s0_times_s1", "size0", "far"], own, [("b", "div(n, 2)", 64), (5, "n + 1")])
    assert found == {"s0_times_s1": "b * FloorDiv(n, 2)", "size0": 5, "far": None}
