# SPDX-License-Identifier: Apache-2.0
"""Every iOp with its axes open, on every target: one kernel gives at all sizes what the interpreter gives.

The suite takes a few forms of each target, the campaign all of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm import hardware
from uir_tvm.igraph import interpreter, parse_igraph
from uir_tvm.igraph.sizes import at
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import check as faults_of

from tests.as_programs import build_igraph, run_igraph
from tests.asked import ALL, asked

from .cases import CASES, CLASSES, CaseGraph
from .open_cases import OPEN_CASES, RULES, OpenCase, check_open_case
from .test_targets import check

#: What the suite runs: loops over tiles of columns and of terms, boxes with a first column, columns apart,
#: rows of a table, also of open width, rows that start anywhere in a tile, registers that lanes exchange in
#: vectors of different widths, and dtypes of every width.
QUICK = {
    "uir-cpu": ("compare-fp32-ragged[n,m]", "reduce-int32-strided[m]", "indexed-fp32-ragged[n,m,w]"),
    "uir-cuda": ("contract-fp64-ragged[n,m,k]", "indexed-int8-ragged[m]"),
    "uir-ascend": ("place-fp32-ragged[n,m]", "reduce-fp16-column[m]", "indexed-fp16-row[n,m,w]"),
    "uir-bang": ("reduce-fp32-ragged[n,m]", "indexed-fp32-strided[n,m,w]"),
}
SAMPLE = [(name, target) for target, names in QUICK.items() for name in names]
#: Of sizes that are drawn, each form on one target.
DRAWN = [("place-fp32-strided[n,m]", "uir-cpu"), ("reduce-fp32-ragged[n,m]", "uir-bang")]


@pytest.mark.parametrize(
    ("name", "target"), [(name, target) for name in OPEN_CASES for target in TARGETS] if ALL else SAMPLE
)
def test_one_kernel_is_right_at_every_size(name: str, target: str) -> None:
    called = check_open_case(OPEN_CASES[name], target, check)
    if not ALL:
        assert called >= 4


def test_every_case_has_each_axis_open_in_turn_and_then_all() -> None:
    for case in CASES.values():
        if case.kind in CLASSES:
            axes = {"contract": "nmk", "indexed": "nmw"}.get(case.kind, "nm")
            assert all(f"{case.name}[{','.join(form)}]" in OPEN_CASES for form in (*axes, axes))


def test_points_are_around_tiles() -> None:
    shape = OPEN_CASES["contract-fp32-ragged[n,m,k]"].shape
    points = shape.points()
    for size, tile in {"n": 4, "m": 45, "k": 13}.items():
        assert {1, 2, tile - 1, tile, tile + 1} <= {point[size] for point in points}
    assert {"n": 11, "m": 93, "k": 29} == {size: max(p[size] for p in points) for size in "nmk"}
    assert {7, 89, 23} <= {point[size] for point in points for size in "nmk"}
    # a tile's end of one is met by others elsewhere
    assert len({tuple(point.values()) for point in points}) == len(points)


@pytest.mark.parametrize("name", ["place-fp32-ragged[n,m]", "contract-int8-strided[n,m,k]"])
def test_an_open_form_has_the_iops_of_its_case(name: str) -> None:
    one, hw = OPEN_CASES[name], hardware.get(None, "cpu")
    made, static = (CaseGraph(one.case, shape, hw).graph for shape in (one.shape, one.case.shape))
    assert {iop.op for iop, _ in static.walk()} <= {iop.op for iop, _ in made.walk()}
    assert all(pointer.dims for pointer in made.params) and not any(pointer.dims for pointer in static.params)
    assert not at(made, one.shape.tiles).sizes


def _wrong(one: OpenCase, find: str, into: str) -> int:
    """How many faults the verifier finds in the first operation's graph with a piece of its text changed."""
    hw = hardware.get(None, "cpu")
    graph = CaseGraph(one.case.only(one.case.operations[0]), one.shape, hw).graph
    text = str(graph)
    assert find in text
    return len(faults_of(parse_igraph(text.replace(find, into), hw), RULES))


def test_the_verifier_is_asked_for_all_sizes() -> None:
    """A tile that ends too late is a fault of the form, whatever the points are."""
    one = OPEN_CASES["unary-fp32-ragged[n,m]"]
    assert not _wrong(one, "rows :n - 4*pid", "rows :n - 4*pid")
    assert _wrong(one, "rows :n - 4*pid", "rows :n - 4*pid + 1")
    assert _wrong(one, ":m - 45*tile]", ":m - 45*tile + 1]")


@pytest.mark.parametrize(("name", "target"), DRAWN)
def test_random_sizes(name: str, target: str) -> None:
    one = OPEN_CASES[name]
    made = one.of(one.case.operations[:3], target)
    built = build_igraph(made.graph, target)
    sizes = {str(s.name): st.integers(int(s.low), int(s.high)) for s in one.shape.sizes}

    @settings(max_examples=asked(6, 60))
    @given(st.fixed_dictionaries(sizes))
    def right(drawn: dict[str, int]) -> None:
        arrays = made.arrays(drawn)
        found = run_igraph(made.graph, target, *arrays, sizes=drawn, built=built)
        wanted = interpreter.run(made.graph, *arrays, allow_unwritten=True, sizes=drawn)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, want.reshape(-1), rtol=2e-6, atol=1e-4)

    right()
