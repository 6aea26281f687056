# SPDX-License-Identifier: Apache-2.0
"""Which iOps share loops: the plans of typical chains, and what must not be fused."""

from __future__ import annotations

from uir_tvm.igraph import IGraph
from uir_tvm.optimize.webs import rename
from uir_tvm.target.cpu.actions import action_of
from uir_tvm.target.cpu.groups import RowNest, plan
from uir_tvm.target.cpu.read_through import read_through

from .support import parsed
from .test_lower import softmax


def nests_of(graph: IGraph) -> list[RowNest]:
    """The plan of a graph without loops."""
    iops = [iop for iop, _ in read_through(rename(graph)).walk()]
    return plan([a for a in map(action_of, iops) if a is not None])


def shapes(nests: list[RowNest]) -> list[list[str]]:
    """The iOps of every group of every nest."""
    return [["+".join(a.iop.name or a.iop.op for a in g.actions) for g in nest.groups] for nest in nests]


def test_softmax_is_one_nest_of_three_groups() -> None:
    (nest,) = nests_of(softmax(4, 64, 2))
    assert nest.rows == 4
    assert shapes([nest]) == [["max", "sub+exp+add", "div+move"]]


def test_elementwise_over_a_contiguous_tile_is_one_long_row() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 320, in)\no = iPointer(dram, fp32, 320, out)\na = iPointer(reg, fp32, 320)",
        """unary.exp.fp32 a[0; (5,64); (64,1)], x[0; (5,64); (64,1)]
        unary.relu.fp32 o[0; (5,64); (64,1)], a[0; (5,64); (64,1)]""",
    )
    (nest,) = nests_of(graph)
    assert (nest.rows, nest.groups[0].cols) == (1, 320)
    assert shapes([nest]) == [["exp+relu"]]


def test_columns_contiguous_along_rows_are_turned() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 320, in)\no = iPointer(dram, fp32, 64, out)",
        "reduce.add.row.unit.fp32 o[0; (64,1); (1,1)], x[0; (64,5); (1,64)]",
    )
    (nest,) = nests_of(graph)
    assert (nest.rows, nest.groups[0].cols, nest.actions[0].kind) == (5, 64, "collect")


def test_a_column_sum_is_read_by_a_later_nest() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 320, in)\no = iPointer(dram, fp32, 320, out)\na = iPointer(reg, fp32, 64)",
        """reduce.add.col.unit.fp32 a[0; (1,64); (64,1)], x[0; (5,64); (64,1)]
        binary.sub.fp32 o[0; (5,64); (64,1)], x[0; (5,64); (64,1)], a[0; (5,64); (0,1)]""",
    )
    assert shapes(nests_of(graph)) == [["add"], ["sub"]]


def test_a_shifted_read_waits_for_the_whole_row() -> None:
    """Within a row other columns are read: another group, the same nest; across rows: another nest."""
    text = """unary.exp.fp32 a[0; (5,64); (64,1)], x[0; (5,64); (64,1)]
        unary.relu.fp32 o[0; (5,32); (64,1)], a[{}; (5,32); (64,1)]"""
    pointers = (
        "x = iPointer(dram, fp32, 320, in)\no = iPointer(dram, fp32, 320, out)\na = iPointer(reg, fp32, 384)"
    )
    assert shapes(nests_of(parsed(pointers, text.format(32)))) == [["exp", "relu"]]
    assert shapes(nests_of(parsed(pointers, text.format(64)))) == [["exp"], ["relu"]]


def test_per_row_work_in_the_form_of_a_row_joins_the_rows() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 256, in)\no = iPointer(dram, fp32, 256, out)\ns = iPointer(reg, fp32, 4)\n"
        "t = iPointer(reg, fp32, 4)",
        """reduce.add.row.unit.fp32 s[0; (4,1); (1,1)], x[0; (4,64); (64,1)]
        unary.recip.fp32 t[0; (1,4); (4,1)], s[0; (1,4); (4,1)]
        binary.mul.fp32 o[0; (4,64); (64,1)], x[0; (4,64); (64,1)], t[0; (4,64); (1,0)]""",
    )
    assert shapes(nests_of(graph)) == [["add", "recip", "mul"]]


def test_a_write_stays_behind_the_reads_of_what_it_replaces() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 64, in)\no = iPointer(dram, fp32, 128, out)\na = iPointer(reg, fp32, 64)",
        """move.dram.reg.fp32 a[0; (1,64); (64,1)], x[0; (1,64); (64,1)]
        unary.copy.fp32 o[0; (1,64); (64,-1)], a[63; (1,64); (64,-1)]
        unary.adds.fp32 a[0; (1,32); (32,1)], a[0; (1,32); (32,1)] [1]
        unary.copy.fp32 o[64; (1,64); (64,1)], a[0; (1,64); (64,1)]""".replace(
            "o[0; (1,64); (64,-1)]", "o[0; (1,64); (64,1)]"
        ),
    )
    (nest,) = nests_of(graph)
    order = [a.iop.name or a.iop.op for g in nest.groups for a in g.actions]
    assert order == ["move", "copy", "adds", "copy"]
    assert len(nest.groups) == 4
