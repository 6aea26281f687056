# SPDX-License-Identifier: Apache-2.0
"""Accumulators whose bounds sizes set are made at once too, where no size leaves their only column out."""

from __future__ import annotations

import pytest
from uir_tvm.hardware import get
from uir_tvm.igraph import IGraph, parse_igraph
from uir_tvm.optimize import fold_inits


def sums_of_open_rows(least: int) -> IGraph:
    """Sums of rows of s elements, s from ``least`` on; the bounds are those that extraction gives."""
    rows, tile = "rows :-4*k + s", "(4,16); (16,1); rows :-4*k + s; cols :s"
    one = f"(4,1); (1,1); {rows}; cols :s"
    return parse_igraph(
        f"""igraph sums on host parallel (1, 1) {{
        size s = [{least}, 16]
        x = iPointer(dram, fp32, (s, s), in)
        y = iPointer(dram, fp32, (s, 1), out)
        t = iPointer(reg, fp32, 64)
        p = iPointer(reg, fp32, 4)
        a = iPointer(reg, fp32, 4)
        for k in 4 {{
          fill.fp32 a[0; (1,4); (4,1); cols :-4*k + s] [0.0]
          move.dram.reg.fp32 t[0; {tile}], x[4*k*s; (4,16); (s,1); {rows}; cols :s]
          reduce.add.row.unit.fp32 p[0; {one}], t[0; {tile}]
          binary.add.fp32 a[0; {one}], a[0; {one}], p[0; {one}]
          move.reg.dram.fp32 y[4*k; (4,1); (1,1); {rows}], a[0; (4,1); (1,1); {rows}]
        }}
        }}""",
        get("host"),
    )


def ops(graph: IGraph) -> list[str]:
    return [iop.op for iop, _ in graph.walk()]


@pytest.mark.parametrize(("least", "folded"), [(1, True), (0, False)])
def test_a_bound_of_the_only_column_counts_where_a_size_may_be_below_it(least: int, folded: bool) -> None:
    """Rows of no elements write no sum: then the zeros that were filled stay."""
    before = sums_of_open_rows(least)
    after = fold_inits.run(before)
    assert ("fill" not in ops(after)) == folded
    if folded:
        assert ops(after) == ["move", "reduce", "move"]


@pytest.mark.parametrize(
    ("model", "kind", "folded"), [("mlu370-x8", "bang", True), ("910b2", "ascend", False)]
)
def test_a_product_added_to_zeros_is_made_alone(model: str, kind: str, folded: bool) -> None:
    """Where the matrix unit has a memory of its own; a second product is still added to the first."""
    graph = parse_igraph(
        f"""igraph products on "{model}" parallel (1, 1) {{
        y = iPointer(dram, fp32, 4096, out)
        a = iPointer(reg, fp32, 4096)
        b = iPointer(reg, fp32, 4096)
        s = iPointer(reg, fp32, 4096)
        fill.fp32 a[0; (64,64); (64,1)] [1.0]
        fill.fp32 b[0; (64,64); (64,1)] [2.0]
        fill.fp32 s[0; (64,64); (64,1)] [0.0]
        contract.fp32 s[0; (64,64); (64,1)], a[0; (64,64); (64,1)], b[0; (64,64); (64,1)] [accumulate=true]
        contract.fp32 s[0; (64,64); (64,1)], b[0; (64,64); (64,1)], a[0; (64,64); (64,1)] [accumulate=true]
        move.reg.dram.fp32 y[0; (64,64); (64,1)], s[0; (64,64); (64,1)]
        }}""",
        get(model, kind),
    )
    after = fold_inits.run(graph)
    adds = [bool(iop.attrs["accumulate"]) for iop, _ in after.walk() if iop.op == "contract"]
    assert adds == ([False, True] if folded else [True, True])
    assert ops(after).count("fill") == (2 if folded else 3)
