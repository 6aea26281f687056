# SPDX-License-Identifier: Apache-2.0
"""Figures of graphs with sizes: told at given sizes, or at usual ones."""

from __future__ import annotations

import pytest
from uir_tvm.errors import IGraphError
from uir_tvm.explain import Explanation, KernelReport, explain_graph, render
from uir_tvm.explain.analytic import distance, seconds
from uir_tvm.hardware.rates import rates_of

from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of
from tests.target.sized_kernels import BY_NAME


@pytest.fixture(params=DEVICE_TARGETS, ids=name_of)
def row(request: pytest.FixtureRequest) -> DeviceTarget:
    """Each target that has a device."""
    return request.param


def test_figures_are_told_at_given_sizes(row: DeviceTarget) -> None:
    graph = BY_NAME["exp_of_rows"].graph(row.hardware)
    report = explain_graph(graph, sizes={"n": 10})
    assert report.sizes == {"n": 10} and report.groups == 3
    assert report.traffic.dram_bytes == report.traffic.least_bytes == 2 * 4 * 8 * 10


def test_figures_without_sizes_are_of_usual_ones(row: DeviceTarget) -> None:
    graph = BY_NAME["exp_of_rows"].graph(row.hardware)
    assert explain_graph(graph).sizes == {"n": 301}
    assert seconds(graph) > 0
    assert 0 < distance(graph, 1.0) < 1  # type: ignore[operator]
    large = BY_NAME["twice_in_a_row"].graph(row.hardware, {"16392, 8]": "1638400, 24]"})
    assert explain_graph(large).sizes == {"n": 2040}


def test_sizes_that_the_graph_does_not_take() -> None:
    with pytest.raises(IGraphError, match="n is 302"):
        explain_graph(BY_NAME["exp_of_rows"].graph(DEVICE_TARGETS[0].hardware), sizes={"n": 302})


def test_the_text_says_at_which_sizes() -> None:
    row = DEVICE_TARGETS[0]
    report = explain_graph(BY_NAME["exp_of_rows"].graph(row.hardware), sizes={"n": 10})
    kernel = KernelReport("exp_of_rows", "elementwise", "", 1, report)
    told = Explanation("m", row.name, (kernel,), (), (), rates_of(row.hardware))
    assert "at n = 10 (known at launch)" in render(told)


def test_the_text_has_what_holds_for_all_sizes() -> None:
    """Expressions beside the figures at some sizes; where there is none it says so."""
    row = DEVICE_TARGETS[0]

    def told(name: str) -> str:
        report = explain_graph(BY_NAME[name].graph(row.hardware))
        kernel = KernelReport(name, "", "", 1, report)
        explanation = Explanation("m", row.name, (kernel,), (), (), rates_of(row.hardware))
        symbols = explanation.to_json()["kernels"][0]["graph"]["symbols"]
        assert symbols["pointers"]["y"] and symbols["groups"]
        return render(explanation)

    text = told("exp_of_rows")
    assert "any size   groups = ((n + 3) // 4)" in text
    assert "bytes = 64*n\n" in text and "operations = 8*n" in text and "bytes of x = 32*n" in text
    assert "bytes <= 68*n" in told("gathered_rows")
    assert "bytes: no expression was found; below at n = 403" in told("neighbours")
