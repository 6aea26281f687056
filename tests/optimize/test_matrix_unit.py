# SPDX-License-Identifier: Apache-2.0
"""Products on a unit that reads dram: the extents of the tiles that it multiplies."""

from __future__ import annotations

from typing import Any

import pytest
from uir_tvm.errors import EquivalenceError, PassError
from uir_tvm.igraph import parse_igraph
from uir_tvm.optimize import PASSES, matrix_unit, optimize
from uir_tvm.optimize.split import phases
from uir_tvm.verify import verify
from uir_tvm.verify.compared import Comparer
from uir_tvm.verify.equivalent import METHODS

from .pairs import HARDWARE
from .toy import applied

DEVICE = HARDWARE.replace("reg_bytes = 4096", 'reg_bytes = 16384\n  figure product_level = "dram"')


@pytest.mark.parametrize(
    ("stride", "rows"), [("(64,1)", 16), ("(1,10)", 32)], ids=["rows lie together", "columns lie together"]
)
def test_a_tile_that_is_turned_on_its_way_is_whole_in_both_directions(stride: str, rows: int) -> None:
    """Rows are multiples of 16; where columns lie together, each column is 32 bytes of int8 as well."""
    graph = parse_igraph(
        f"""{DEVICE}
igraph g on toy parallel (1, 1) {{
  x = iPointer(dram, int8, 640, in)
  w = iPointer(dram, int8, 2048, in)
  y = iPointer(dram, int32, 320, out)
  a = iPointer(reg, int8, 640)
  b = iPointer(reg, int8, 2048)
  c = iPointer(reg, int32, 320)
  move.dram.reg.int8 a[0; (10,64); {stride}], x[0; (10,64); {stride}]
  move.dram.reg.int8 b[0; (64,32); (32,1)], w[0; (64,32); (32,1)]
  contract.int32 c[0; (10,32); (32,1)], a[0; (10,64); {stride}], b[0; (64,32); (32,1)] [accumulate=false]
  move.reg.dram.int32 y[0; (10,32); (32,1)], c[0; (10,32); (32,1)]
}}"""
    )
    verify(graph)
    made = applied(matrix_unit, graph)
    (product,) = (iop for iop, _ in made.walk() if iop.op == "contract")
    left, right = product.sources
    assert (left.shape, right.shape, product.target.shape) == ((rows, 64), (64, 32), (rows, 32))


#: y = c + a.b, of 128 terms in four rounds.
ACCUMULATED = f"""{DEVICE}
igraph sums on toy parallel (1, 1) {{
  x = iPointer(dram, fp32, 2048, in)
  w = iPointer(dram, fp32, 2048, in)
  c = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 256, out)
  a = iPointer(reg, fp32, 512)
  b = iPointer(reg, fp32, 512)
  t = iPointer(reg, fp32, 256)
  move.dram.reg.fp32 t[0; (16,16); (16,1)], c[0; (16,16); (16,1)]
  for k in 4 {{
    move.dram.reg.fp32 a[0; (16,32); (32,1)], x[32*k; (16,32); (128,1)]
    move.dram.reg.fp32 b[0; (32,16); (16,1)], w[512*k; (32,16); (16,1)]
    contract.fp32 t[0; (16,16); (16,1)], a[0; (16,32); (32,1)], b[0; (32,16); (16,1)] [accumulate=true]
  }}
  move.reg.dram.fp32 y[0; (16,16); (16,1)], t[0; (16,16); (16,1)]
}}"""


def test_sums_that_are_added_in_another_order_agree_within_their_tolerance(
    differences: list[EquivalenceError],
) -> None:
    """The pass says that it reorders; what it makes is then what later passes keep, to the bit."""
    (row,) = (each for each in PASSES if each.reorders)
    assert row.name == "matrix_unit"
    graph = parse_igraph(ACCUMULATED)
    verify(graph)
    made = row.run(graph)
    assert made is not graph
    notes: list[Any] = []
    checks = Comparer("sampled", notes).after_passes(graph, None, fast_math=False)
    assert checks.kept is not None and checks.reordered is not None
    with pytest.raises(EquivalenceError, match="computes another y"):
        checks.kept(made)
    checks.reordered(made)
    assert notes[0][1].methods == METHODS and not notes[0][1].exact
    checks.kept(made)
    assert notes[1][1].exact
    with pytest.raises(EquivalenceError, match="computes another y"):
        checks.kept(graph)
    differences.clear()


def test_a_pass_that_reorders_may_not_change_more(differences: list[EquivalenceError]) -> None:
    graph = parse_igraph(ACCUMULATED)
    checks = Comparer("sampled", []).after_passes(graph, None, fast_math=False)
    faults = {"for k in 4": "for k in 3", "x[32*k": "x[16*k", "w[512*k": "w[256*k"}
    for old, new in faults.items():
        with pytest.raises(EquivalenceError, match="computes another y"):
            checks.reordered(parse_igraph(ACCUMULATED.replace(old, new)))  # type: ignore[misc]
    differences.clear()


def test_the_compiler_takes_what_reorders_and_holds_the_rest_to_the_bit(
    differences: list[EquivalenceError],
) -> None:
    graph = parse_igraph(ACCUMULATED)
    checks = Comparer("sampled", []).after_passes(graph, verify, fast_math=False)
    made = optimize(graph, ["matrix_unit", "insert_sync"], check=checks.kept, reordered=checks.reordered)
    assert [step.fault for step in made.steps] == ["", ""] and made.steps[0].changed
    other = Comparer("sampled", []).after_passes(graph, verify, fast_math=False)
    with pytest.raises(PassError, match="computes another y"):
        optimize(graph, ["matrix_unit"], check=other.kept)
    differences.clear()


def test_zeros_are_made_anew_behind_a_barrier_of_all_units() -> None:
    """A kernel may end there: its reg is not read by the next one."""
    once = """
  move.dram.reg.fp32 a[0; (10,16); (16,1)], x[0; (10,16); (16,1)]
  move.dram.reg.fp32 b[0; (16,16); (16,1)], w[0; (16,16); (16,1)]
  contract.fp32 c[0; (10,16); (16,1)], a[0; (10,16); (16,1)], b[0; (16,16); (16,1)] [accumulate=false]
  move.reg.dram.fp32 y[0; (10,16); (16,1)], c[0; (10,16); (16,1)]"""
    graph = parse_igraph(
        f"""{DEVICE}
igraph g on toy parallel (1, 1) {{
  x = iPointer(dram, fp32, 160, in)
  w = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 160, out)
  z = iPointer(dram, fp32, 160, out)
  a = iPointer(reg, fp32, 160)
  b = iPointer(reg, fp32, 256)
  c = iPointer(reg, fp32, 160){once}
  sync.dram y[0; (1,160); (160,1)], y[0; (1,160); (160,1)]{once.replace("y[", "z[").replace("x[", "y[")}
}}"""
    )
    verify(graph)
    made = applied(matrix_unit, graph)
    verify(made)
    assert [len(part.body) > 0 for part in phases(made)] == [True, True]
    fills = [str(iop.target.pointer.name) for iop, _ in made.walk() if iop.op == "fill"]
    assert len(fills) == len(set(fills)) == 2
