# SPDX-License-Identifier: Apache-2.0
"""Figures as expressions of sizes: at every size they are what is counted there, element by element."""

from __future__ import annotations

import pytest
from uir_tvm.explain import explain_graph
from uir_tvm.explain.sized_counts import SizedDomain
from uir_tvm.explain.sized_figures import sized_figures
from uir_tvm.igraph import parse_igraph
from uir_tvm.igraph.affine import affine, var
from uir_tvm.igraph.space import Size, Space
from uir_tvm.sizes.symbolic_shapes import value_of
from uir_tvm.verify.region import Axis

from tests.device_targets import DEVICE_TARGETS
from tests.explain.graphs import graph as static_graph
from tests.target.sized_kernels import BY_NAME

HARDWARE = DEVICE_TARGETS[1].hardware


@pytest.mark.parametrize("name", list(BY_NAME))
def test_expressions_are_what_is_counted(name: str) -> None:
    graph = BY_NAME[name].graph(HARDWARE)
    found = sized_figures(graph)
    assert found is not None and found.groups and found.operations
    for n in BY_NAME[name].points(graph):
        report = explain_graph(graph, sizes={"n": max(n, 1)}) if n else None
        if report is None:
            continue
        dram = report.traffic.level("dram")
        for text, counted in (
            (found.groups, report.groups),
            (found.dram_bytes, dram.bytes),
            (found.read_bytes, dram.read_bytes),
            (found.written_bytes, dram.written_bytes),
            (found.operations, report.arithmetic.total),
        ):
            assert not text or value_of(text, {"n": n}) == counted, (name, n, text)
        assert found.exact == report.traffic.exact


def test_how_they_read() -> None:
    found = sized_figures(BY_NAME["scaled_by_a_row"].graph(HARDWARE))
    assert found is not None and found.exact
    assert (found.groups, found.written_bytes, found.operations) == ("((n + 3) // 4)", "32*n", "8*n")
    # the row is loaded by each group anew
    assert found.read_bytes == "32*((n + 3) // 4) + 32*n"
    assert found.pointers == {"x": "32*n", "s": "32", "y": "32*n"} and found.workspace_bytes == "0"
    assert sized_figures(BY_NAME["gathered_rows"].graph(HARDWARE)).exact is False  # type: ignore[union-attr]


def test_two_sizes_multiply() -> None:
    """``bytes = 8*n*d``: a tile of rows of open length."""
    text = f'''igraph rows on "{HARDWARE.name}" parallel (((n + 3) / 4), 1) {{
      size n = [0, 400]
      size d = [1, 64]
      x = iPointer(dram, fp32, (n, d), in)
      y = iPointer(dram, fp32, (n, d), out)
      a = iPointer(reg, fp32, 256)
      move.dram.reg.fp32 a[0; (4,64); (64,1); rows :n - 4*pid; cols :d], x[4*d*pid; (4,64); (d,1); rows :n -
      4*pid; cols :d]
      move.reg.dram.fp32 y[4*d*pid; (4,64); (d,1); rows :n - 4*pid; cols :d], a[0; (4,64); (64,1); rows :n -
      4*pid; cols :d]
    }}'''
    found = sized_figures(parse_igraph(text, HARDWARE))
    assert found is not None and found.dram_bytes == "8*d*n" and found.pointers["x"] == "4*d*n"


def test_graphs_without_sizes_have_none() -> None:
    body = "a = iPointer(dram, fp32, 8, out)\nfill.fp32 a[pid; (1,1); (1,1)] [0.0]"
    assert sized_figures(static_graph(body)) is None


DOMAIN = SizedDomain((var("n") + 3) // 4, Space({"n": Size("n", 0, 100)}))


@pytest.mark.parametrize(
    ("axes", "extents", "wanted"),
    [
        ([Axis(4, 1, (), (var("n") - 4 * var("pid"),)), Axis(8, 1)], {}, "8*n"),
        ([Axis(4, 1)], {"k": 3}, "12*((n + 3) / 4)"),
        # two loops walk one axis
        ([Axis(2, 1, (), (affine(11) - 2 * var("j") - 6 * var("k"),))], {"j": 3, "k": 2}, "11*((n + 3) / 4)"),
        # units beyond the tiles have no row, and those of one loop go with them
        (
            [
                Axis(1, 1, (), ((var("n") + 7) // 8 - var("pid"),)),
                Axis(8, 1, (), (var("n") - 8 * var("pid"),)),
            ],
            {},
            "n",
        ),
        ([Axis(1, 1, (), (var("n") - var("pid"),)), Axis(8, 1)], {}, None),
        # the loop's rounds end before the size does, or overlap, or another axis has the variable too
        ([Axis(4, 1, (), (var("n") - 4 * var("k"),))], {"k": 3}, None),
        ([Axis(4, 1, (), (var("n") - 2 * var("pid"),))], {}, None),
        ([Axis(4, 1, (), (var("n") - 4 * var("pid"),))] * 2, {}, None),
        ([Axis(4, 1, (var("pid"),), ())], {}, None),
        ([Axis(4, 1, (), (var("n") - 4 * (var("pid") % 5),))], {}, None),
    ],
)
def test_sums(axes: list[Axis], extents: dict[str, int], wanted: str | None) -> None:
    """Where no rule reaches there is no expression, rather than a wrong one."""
    found = DOMAIN.volume(axes, {"pid": 26, **extents})
    assert (None if found is None else str(found)) == wanted


def test_leaders_alone() -> None:
    assert DOMAIN.volume([Axis(4, 1)], {"pid": 26}, every=2) is None, "units are no multiple of two"
    pairs = SizedDomain(2 * var("n"), DOMAIN.space)
    assert str(pairs.volume([Axis(4, 1)], {"pid": 200}, every=2)) == "4*n"
