# SPDX-License-Identifier: Apache-2.0
"""Bounds that say nothing are those that no value of the variables makes matter."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm.igraph import HardwareModel, parse_igraph, points
from uir_tvm.igraph.affine import Affine, affine, var
from uir_tvm.igraph.nodes import IOp
from uir_tvm.optimize.needless_bounds import without_needless
from uir_tvm.optimize.step_domain import StepDomain

HARDWARE = HardwareModel("host", "cpu", 4, 1, 2**20, 0, 64, {})
ROWS, COLS = 6, 8
EXTENTS = {"pid": 4, "i": 5, "j": 7}


TILE = f"({ROWS},{COLS}); ({COLS},1)"
GRAPH = parse_igraph(
    f"""igraph g on host parallel (4, 1) {{
      x = iPointer(dram, fp32, {4 * ROWS * COLS}, in)
      y = iPointer(dram, fp32, {4 * ROWS * COLS}, out)
      r = iPointer(reg, fp32, {ROWS * COLS})
      move.dram.reg.fp32 r[0; {TILE}], x[{ROWS * COLS}*pid; {TILE}]
      move.reg.dram.fp32 y[{ROWS * COLS}*pid; {TILE}], r[0; {TILE}]
    }}""",
    HARDWARE,
)
LOAD = next(iter(GRAPH.body))
DOMAIN = StepDomain.of(GRAPH).inside("i", EXTENTS["i"]).inside("j", EXTENTS["j"])


@st.composite
def bounds(draw: st.DrawFn) -> Affine:
    """A sum of variables, some of them divided."""
    found = affine(draw(st.integers(-8, 16)))
    for name in EXTENTS:
        value = var(name) * draw(st.integers(1, 3)) + draw(st.integers(-3, 3))
        divided = draw(st.sampled_from([value, value // 3, value % 3, affine(0)]))
        found = found + divided * draw(st.integers(-4, 4))
    return found


def values_of(bound: Affine) -> list[int]:
    every = itertools.product(*(range(extent) for extent in EXTENTS.values()))
    return [bound.evaluate(dict(zip(EXTENTS, point, strict=True))) for point in every]


@given(bounds(), bounds())
def test_a_bound_goes_where_it_never_matters(begin: Affine, end: Affine) -> None:
    piece = LOAD.sources[0].replace(rows=(begin, end))
    bounded = IOp(LOAD.op, LOAD.name, LOAD.dtype, LOAD.targets, [piece], LOAD.attrs)
    kept = without_needless(bounded, DOMAIN).sources[0].valid
    assert (kept[0] is None) == (max(values_of(begin)) <= 0)
    assert (kept[1] is None) == (min(values_of(end)) >= ROWS)


def test_few_points_decide_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """All values of a bound are not asked for where its first or last one says that it matters."""

    def refused(*_: object) -> None:
        raise AssertionError("all values were asked for")

    monkeypatch.setattr(points, "values", refused)
    piece = LOAD.sources[0].replace(rows=(None, affine(197) - (var("i") * 35 + var("j")) // 3 * 9))
    bounded = IOp(LOAD.op, LOAD.name, LOAD.dtype, LOAD.targets, [piece], LOAD.attrs)
    assert without_needless(bounded, DOMAIN) is bounded
