# SPDX-License-Identifier: Apache-2.0
"""Whole operators run to NumPy's numbers, and every misuse of memory is caught with its witness."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from uir_tvm.errors import IGraphError, InterpreterError, ShapeError
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, parse_igraph, print_igraph
from uir_tvm.igraph.interpreter import run

from .strategies import random_inputs, runnable_igraphs

HARDWARE = """\
hardware host {{ kind = cpu num_groups = {0} num_units = {1} reg_bytes = 65536 sram_bytes = 65536
  vector_bytes = 64 }}
igraph g on host parallel ({0}, {1}) {{
"""


def graph_of(body: str, groups: int = 1, units: int = 1) -> IGraph:
    """A graph from its pointers and iOps."""
    return parse_igraph(HARDWARE.format(groups, units) + body + "\n}")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Random normal fp32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


#: The addition of the definition's example: 64 units, 2 loops, tiles of (2, 32) of 8192 elements.
ADD = """
  a = iPointer(dram, fp32, 8192, in)
  c = iPointer(dram, fp32, 8192, in)
  o = iPointer(dram, fp32, 8192, out)
  ra = iPointer(reg, fp32, 64)
  rc = iPointer(reg, fp32, 64)
  for lid in 2 {
    move.dram.reg.fp32 ra[0; (2,32); (32,1)], a[4096*lid + LOAD*pid; (2,32); (32,1)]
    move.dram.reg.fp32 rc[0; (2,32); (32,1)], c[4096*lid + LOAD*pid; (2,32); (32,1)]
    binary.add.fp32 ra[0; (2,32); (32,1)], ra[0; (2,32); (32,1)], rc[0; (2,32); (32,1)]
    move.reg.dram.fp32 o[4096*lid + STORE*pid; (2,32); (32,1)], ra[0; (2,32); (32,1)]
  }
"""


def add(load: int, store: int) -> IGraph:
    """The example with the factors of pid of its loads and its store."""
    return graph_of(ADD.replace("LOAD", str(load)).replace("STORE", str(store)), 64)


def test_the_corrected_example_adds() -> None:
    a, c = normal(8, 1024), normal(8, 1024, seed=1)
    (out,) = run(add(64, 64), a, c)
    np.testing.assert_array_equal(out, (a + c).reshape(-1))
    (again,) = run(add(64, 64), {"c": c, "a": a})
    np.testing.assert_array_equal(again, out)


def test_the_uncorrected_example_is_out_of_bounds() -> None:
    a = normal(8192)
    with pytest.raises(InterpreterError, match="lies at 82.. of a") as caught:
        run(add(128, 64), a, a)
    witness = caught.value.witness
    address = 4096 * witness["lid"] + 128 * witness["pid"] + 32 * witness["row"] + witness["col"]
    assert address >= 8192
    assert f"lies at {address} of a" in caught.value.what
    assert "move.dram.reg.fp32" in caught.value.where


def test_two_units_that_write_one_element_are_caught() -> None:
    a = normal(8192)
    with pytest.raises(InterpreterError, match=r"Units \d+ and \d+ write the same element of o") as caught:
        run(add(64, 128), a, a)
    assert caught.value.witness["pid"] == 32


def test_an_output_element_that_nothing_writes_is_caught() -> None:
    a = normal(8192)
    with pytest.raises(InterpreterError, match="4032 of the 8192 elements of the output o") as caught:
        run(half_written(), a, a)
    assert caught.value.witness == {"element": 64}
    (out,) = run(half_written(), a, a, allow_unwritten=True)
    wanted = a + a
    wanted[64:4096] = 0
    np.testing.assert_array_equal(out, wanted)


def half_written() -> IGraph:
    """The example whose units but the first store nothing in the first loop."""
    text = print_igraph(add(64, 64)).replace(
        "o[4096*lid + 64*pid; (2,32); (32,1)]",
        "o[4096*lid + 64*pid; (2,32); (32,1); rows :2 - 2*pid + 200*lid]",
    )
    return parse_igraph(text)


def test_a_read_of_registers_that_nothing_wrote_is_caught_with_its_witness() -> None:
    text = print_igraph(add(64, 64)).replace(
        "rc[0; (2,32); (32,1)], c", "rc[0; (2,32); (32,1); cols :32 - 3*lid], c"
    )
    # in the first loop all is loaded; from the second on, stale registers are read: no error
    run(parse_igraph(text), normal(8192), normal(8192))
    stale = parse_igraph(text.replace("- 3*lid", "- 3*(1 - lid)"))
    with pytest.raises(
        InterpreterError, match=r"Nothing was written to element \(0, 29\) of a slice of rc"
    ) as caught:
        run(stale, normal(8192), normal(8192))
    assert caught.value.witness == {"pid": 0, "lid": 0, "row": 0, "col": 29}
    assert "binary.add.fp32" in caught.value.where and "slice rc[0; (2,32); (32,1)]" in caught.value.where


def test_registers_of_one_unit_are_not_those_of_the_next() -> None:
    graph = graph_of(
        """
  o = iPointer(dram, fp32, 2, out)
  r = iPointer(reg, fp32, 1)
  fill.fp32 r[0; (1,1); (1,1); rows :1 - pid] [5.0]
  move.reg.dram.fp32 o[pid; (1,1); (1,1)], r[0; (1,1); (1,1)]
""",
        2,
    )
    with pytest.raises(InterpreterError, match="Nothing was written") as caught:
        run(graph)
    assert caught.value.witness["pid"] == 1


def test_a_source_is_not_read_outside_its_valid_box() -> None:
    graph = graph_of("""
  a = iPointer(dram, fp32, 4, in)
  o = iPointer(dram, fp32, 4, out)
  unary.exp.fp32 o[0; (1,4); (4,1)], a[0; (1,4); (4,1); cols :3]
""")
    with pytest.raises(InterpreterError, match="read where it is not valid") as caught:
        run(graph, normal(4))
    assert caught.value.need == "rows 0:1, columns 0:4"
    assert "columns 0:3" in caught.value.limit


def test_bounds_count_only_inside_the_valid_box() -> None:
    graph = graph_of(
        """
  a = iPointer(dram, fp32, 10, in)
  o = iPointer(dram, fp32, 10, out)
  r = iPointer(reg, fp32, 4)
  move.dram.reg.fp32 r[0; (1,4); (4,1)], a[4*pid; (1,4); (4,1); cols :10 - 4*pid] [pad=0.0]
  move.reg.dram.fp32 o[4*pid; (1,4); (4,1); cols :10 - 4*pid], r[0; (1,4); (4,1)]
""",
        4,
    )
    a = normal(10)
    np.testing.assert_array_equal(run(graph, a)[0], a)


def test_zero_sizes_are_no_operation() -> None:
    graph = graph_of("""
  a = iPointer(dram, fp32, 0, in)
  o = iPointer(dram, fp32, 0, out)
  s = iPointer(dram, fp32, 3, out)
  unary.exp.fp32 o[9; (0,4); (4,1)], a[9; (0,4); (4,1)]
  reduce.add.row.unit.fp32 s[0; (3,1); (1,1)], a[5; (3,0); (0,1)]
  for i in 0 {
    unary.exp.fp32 o[9; (5,4); (4,1)], a[9; (5,4); (4,1)]
  }
""")
    out, total = run(graph, np.zeros((0, 4), np.float32))
    assert out.size == 0 and total.tolist() == [0, 0, 0]


def test_inout_keeps_its_shape_and_the_callers_array() -> None:
    graph = graph_of("""
  x = iPointer(dram, fp32, 6, inout)
  unary.adds.fp32 x[0; (2,2); (3,1)], x[0; (2,2); (3,1)] [1.0]
""")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (out,) = run(graph, x)
    np.testing.assert_array_equal(out, [[1, 2, 2], [4, 5, 5]])
    np.testing.assert_array_equal(x.reshape(-1), np.arange(6))


def test_overlapping_target_and_source_read_before_they_write() -> None:
    graph = graph_of("""
  x = iPointer(dram, fp32, 5, inout)
  move.dram.dram.fp32 x[1; (1,4); (4,1)], x[0; (1,4); (4,1)]
  move.dram.dram.fp32 x[4; (1,5); (5,-1)], x[0; (1,5); (5,1)]
""")
    assert run(graph, np.arange(5, dtype=np.float32))[0].tolist() == [3, 2, 1, 0, 0]


# --- groups --------------------------------------------------------------------------------------

GROUP_SUM = """
  a = iPointer(dram, fp32, 512, in)
  o = iPointer(dram, fp32, 512, out)
  r = iPointer(reg, fp32, 32)
  t = iPointer(reg, fp32, 2)
  b = iPointer(sram, fp32, 16)
  move.dram.reg.fp32 r[0; (2,16); (16,1)], a[32*pid; (2,16); (16,1)]
  fill.fp32 t[0; (2,1); (1,1)] [-1.0]
  reduce.max.row.group.fp32 t[0; (2,1); (1,1)], r[0; (2,16); (16,1)] [BUFFER, group_size=SIZE]
  broadcast.row.group.fp32 r[0; (2,16); (16,1)], t[0; (2,1); (1,1)] [BUFFER, group_size=SIZE]
  move.reg.dram.fp32 o[32*pid; (2,16); (16,1)], r[0; (2,16); (16,1)]
""".replace("BUFFER", "buffer=b[OFFSET; (SIZE,2); (2,1)]")


def group_sum(size: int, offset: str) -> IGraph:
    """The maximum over the rows of ``size`` units, back to all of them; 2 groups of 8 units."""
    return graph_of(GROUP_SUM.replace("SIZE", str(size)).replace("OFFSET", offset), 2, 8)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_group_reduce_and_broadcast(size: int) -> None:
    a = normal(16, 2, 16)
    (out,) = run(group_sum(size, f"{2 * size}*((pid % 8) / {size})"), a)
    sets = a.reshape(16 // size, size, 2, 16)
    wanted = np.broadcast_to(sets.max(axis=(1, 3), keepdims=True), sets.shape)
    np.testing.assert_array_equal(out.reshape(sets.shape), wanted)


def test_only_the_leader_gets_the_result_of_a_group_reduce() -> None:
    own = "  broadcast.row.unit.fp32 r[0; (2,16); (16,1)], t[0; (2,1); (1,1)]\n"
    text = re.sub(r"  broadcast.*\n", own, GROUP_SUM)
    text = text.replace("SIZE", "4").replace("OFFSET", "8*((pid % 8) / 4)").replace("max", "add")
    a = normal(16, 2, 16)
    (out,) = run(graph_of(text, 2, 8), a)
    out = out.reshape(4, 4, 2, 16)
    assert (out[:, 1:] == -1).all()
    # the order of the sum
    np.testing.assert_allclose(out[:, 0, :, 0], a.reshape(4, 4, 2, 16).sum((1, 3)), rtol=1e-5, atol=1e-5)


def test_buffers_of_two_sets_must_not_meet() -> None:
    with pytest.raises(InterpreterError, match="buffers of two sets of one group meet"):
        run(group_sum(4, "0"), normal(512))
    with pytest.raises(InterpreterError, match="different buffers"):
        run(group_sum(8, "pid % 2"), normal(512))
    with pytest.raises(InterpreterError, match="of b"):
        run(group_sum(8, "1"), normal(512))


def test_the_group_size_must_divide_the_group() -> None:
    with pytest.raises(InterpreterError, match="no sets of 3"):
        run(graph_of(GROUP_SUM.replace("SIZE", "3").replace("OFFSET", "0"), 2, 8), normal(512))


def test_the_buffer_holds_nothing_afterwards() -> None:
    text = GROUP_SUM.replace("SIZE", "8").replace("OFFSET", "0")
    text += "  move.sram.reg.fp32 t[0; (2,1); (1,1)], b[0; (2,1); (1,1)]\n"
    with pytest.raises(InterpreterError, match="Nothing was written .* of a slice of b"):
        run(graph_of(text, 2, 8), normal(512))


EXCHANGE = """
  a = iPointer(dram, fp32, 8, in)
  o = iPointer(dram, fp32, 8, out)
  w = iPointer(LEVEL, fp32, SIZE)
  move.dram.LEVEL.fp32 w[MINE; (1,1); (1,1)], a[pid; (1,1); (1,1)]
  sync.LEVEL w[0; (1,1); (1,1)], w[0; (1,1); (1,1)]
  move.LEVEL.dram.fp32 o[pid; (1,1); (1,1)], w[THEIRS; (1,1); (1,1)]
"""


def exchange(level: str, mine: str, theirs: str, size: int) -> IGraph:
    """Every unit writes one element, and after a sync reads another unit's; 2 groups of 4."""
    words = {"LEVEL": level, "MINE": mine, "THEIRS": theirs, "SIZE": str(size)}
    text = EXCHANGE
    for word, value in words.items():
        text = text.replace(word, value)
    return graph_of(text, 2, 4)


def test_units_of_a_group_exchange_through_sram() -> None:
    a = np.arange(8, dtype=np.float32)
    (out,) = run(exchange("sram", "pid % 4", "3 - pid % 4", 4), a)
    assert out.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]


def test_all_units_exchange_through_dram_and_only_with_a_sync() -> None:
    a = np.arange(8, dtype=np.float32)
    graph = exchange("dram", "pid", "7 - pid", 8)
    assert run(graph, a)[0].tolist() == a[::-1].tolist()
    unsynced = parse_igraph(re.sub(r"sync.dram", "sync.sram", print_igraph(graph)))
    with pytest.raises(InterpreterError, match="with no sync between"):
        run(unsynced, a)


@pytest.mark.parametrize("theirs, fine", [("pid / 4 * 4 + 3 - pid % 4", True), ("(pid + 4) % 8", False)])
def test_a_barrier_of_a_group_orders_its_units_in_dram_too(theirs: str, fine: bool) -> None:
    """Units of one group may exchange through dram after a sync.sram; units of two groups may not."""
    a = np.arange(8, dtype=np.float32)
    graph = parse_igraph(re.sub("sync.dram", "sync.sram", print_igraph(exchange("dram", "pid", theirs, 8))))
    if fine:
        assert run(graph, a)[0].tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    else:
        with pytest.raises(InterpreterError, match="with no sync between"):
            run(graph, a)


# --- gather, scatter, identity -------------------------------------------------------------------


def test_gather_reads_only_what_the_index_names() -> None:
    text = """
  i = iPointer(dram, int32, 2, in)
  o = iPointer(dram, fp32, 4, out)
  r = iPointer(reg, fp32, 8)
  fill.fp32 r[0; (3,2); (2,1)] [4.0]
  gather.fp32 o[0; (2,2); (2,1)], r[0; (4,2); (2,1)], i[0; (2,1); (1,1)] [pad=7.0]
"""
    assert run(graph_of(text), np.array([2, 9], np.int32))[0].tolist() == [4, 4, 7, 7]
    with pytest.raises(InterpreterError, match=r"Nothing was written to element \(3, 0\)"):
        run(graph_of(text), np.array([2, 3], np.int32))


def test_gather_says_which_column_of_a_row_holds_nothing() -> None:
    graph = graph_of("""
  i = iPointer(dram, int32, 2, in)
  o = iPointer(dram, fp32, 4, out)
  r = iPointer(reg, fp32, 8)
  fill.fp32 r[0; (4,1); (2,1)] [4.0]
  gather.fp32 o[0; (2,2); (2,1)], r[0; (4,2); (2,1)], i[0; (2,1); (1,1)] [pad=7.0]
""")
    with pytest.raises(InterpreterError, match=r"Nothing was written to element \(2, 1\)"):
        run(graph, np.array([2, 3], np.int32))


def test_units_may_meet_in_a_scatter() -> None:
    graph = graph_of(
        """
  x = iPointer(dram, fp32, 4, in)
  i = iPointer(dram, int64, 4, in)
  cache = iPointer(dram, fp32, 3, inout)
  scatter.fp32 cache[0; (3,1); (1,1)], x[pid; (1,1); (1,1)], i[pid; (1,1); (1,1)]
""",
        4,
    )
    cache = np.zeros(3, np.float32)
    assert run(graph, np.float32([1, 2, 3, 4]), np.array([2, 0, 2, -1]), cache)[0].tolist() == [2, 0, 3]


def test_identity_wants_the_same_elements() -> None:
    text = """
  o = iPointer(dram, fp32, 8, out)
  fill.fp32 o[0; (1,8); (8,1)] [1.0]
  identity [o[0; (2,2); (4,1)], o[2; (2,2); (4,1)]], [o[OFFSET; (2,4); (4,1)]]
"""
    assert run(graph_of(text.replace("OFFSET", "0")))[0].sum() == 8
    with pytest.raises(InterpreterError, match="not the same elements"):
        run(graph_of(text.replace("OFFSET", "1")))


# --- operators -----------------------------------------------------------------------------------

#: TILE, ONE and AT k stand for the rest of a slice.
ONLINE_SOFTMAX = """
  x = iPointer(dram, fp32, 16000, in)
  y = iPointer(dram, fp32, 16000, out)
  tile = iPointer(reg, fp32, 256)
  wide = iPointer(reg, fp32, 256)
  best = iPointer(reg, fp32, 1)
  new = iPointer(reg, fp32, 1)
  sum = iPointer(reg, fp32, 1)
  part = iPointer(reg, fp32, 1)
  for row in 4 {
    fill.fp32 best[ONE] [-inf]
    fill.fp32 sum[ONE] [0.0]
    for k in 8 {
      move.dram.reg.fp32 tile[TILE], x[AT k] [pad=-inf]
      reduce.max.row.unit.fp32 new[ONE], tile[TILE]
      binary.max.fp32 new[ONE], new[ONE], best[ONE]
      broadcast.row.unit.fp32 wide[TILE], new[ONE]
      binary.sub.fp32 tile[TILE], tile[TILE], wide[TILE]
      unary.exp.fp32 tile[TILE], tile[TILE]
      reduce.add.row.unit.fp32 part[ONE], tile[TILE]
      binary.sub.fp32 best[ONE], best[ONE], new[ONE]
      unary.exp.fp32 best[ONE], best[ONE]
      binary.mul.fp32 sum[ONE], sum[ONE], best[ONE]
      binary.add.fp32 sum[ONE], sum[ONE], part[ONE]
      move.reg.reg.fp32 best[ONE], new[ONE]
    }
    for k2 in 8 {
      move.dram.reg.fp32 tile[TILE], x[AT k2] [pad=0.0]
      broadcast.row.unit.fp32 wide[TILE], best[ONE]
      binary.sub.fp32 tile[TILE], tile[TILE], wide[TILE]
      unary.exp.fp32 tile[TILE], tile[TILE]
      broadcast.row.unit.fp32 wide[TILE], sum[ONE]
      binary.div.fp32 tile[TILE], tile[TILE], wide[TILE]
      move.reg.dram.fp32 y[AT k2], tile[TILE]
    }
  }
"""


def test_online_softmax_over_rows_that_no_tile_divides() -> None:
    x = normal(8, 2000) * 20
    text = ONLINE_SOFTMAX.replace("TILE", "0; (1,256); (256,1)").replace("ONE", "0; (1,1); (1,1)")
    at = r"8000*pid + 2000*row + 256*\1; (1,256); (256,1); cols :2000 - 256*\1"
    (y,) = run(graph_of(re.sub(r"AT (\w+)", at, text), 2), x)
    wide = x.astype(np.float64)
    wanted = np.exp(wide - wide.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    # x - max is rounded to fp32 at magnitude 100: 4e-6 absolute, hence that relative error after exp
    np.testing.assert_allclose(y.reshape(8, 2000), wanted, rtol=2e-5, atol=1e-30)


def test_matrix_product_with_accumulator_over_k() -> None:
    graph = graph_of(
        """
  a = iPointer(dram, fp32, 768, in)
  b = iPointer(dram, fp32, 480, in)
  c = iPointer(dram, fp32, 160, out)
  acc = iPointer(reg, fp32, 40)
  fill.fp32 acc[0; (4,10); (10,1)] [0.0]
  for k in 4 {
    contract.fp32
      acc[0; (4,10); (10,1)],
      a[192*pid + 14*k; (4,14); (48,1); cols :48 - 14*k],
      b[140*k; (14,10); (10,1); rows :48 - 14*k] [accumulate=true]
  }
  move.reg.dram.fp32 c[40*pid; (4,10); (10,1)], acc[0; (4,10); (10,1)]
""",
        4,
    )
    a, b = normal(16, 48), normal(48, 10, seed=1)
    np.testing.assert_allclose(run(graph, a, b)[0].reshape(16, 10), a @ b, rtol=1e-5, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(runnable_igraphs())
def test_random_operators_run_alike_in_any_order_of_units(graph: IGraph) -> None:
    inputs = random_inputs(graph)
    (out,) = run(graph, *inputs)
    locked = graph.replace(pointers=[*graph.pointers, IPointer("unused", "sram", "fp32", 1)])
    np.testing.assert_array_equal(run(locked, *inputs)[0], out)
    parts = [run(graph, *inputs, units=[pid])[0] for pid in reversed(range(graph.num_parallel))]
    # an element that another unit writes stays zero, so that the sum of the parts is the whole
    np.testing.assert_array_equal(sum(parts), out)


def test_a_kernel_of_a_million_elements_takes_seconds() -> None:
    graph = graph_of(
        """
  a = iPointer(dram, fp32, 1048576, in)
  o = iPointer(dram, fp32, 1048576, out)
  r = iPointer(reg, fp32, 1024)
  for i in 512 {
    move.dram.reg.fp32 r[0; (1,1024); (1024,1)], a[524288*pid + 1024*i; (1,1024); (1024,1)]
    unary.exp.fp32 r[0; (1,1024); (1024,1)], r[0; (1,1024); (1024,1)]
    unary.muls.fp32 r[0; (1,1024); (1024,1)], r[0; (1,1024); (1024,1)] [2.0]
    move.reg.dram.fp32 o[524288*pid + 1024*i; (1,1024); (1024,1)], r[0; (1,1024); (1024,1)]
  }
""",
        2,
    )
    a = normal(1 << 20)
    start = time.perf_counter()
    (out,) = run(graph, a)
    # 0.2 s on one idle core; element by element it would be minutes
    assert time.perf_counter() - start < 10
    np.testing.assert_allclose(out, 2 * np.exp(a), rtol=1e-6)


# --- inputs --------------------------------------------------------------------------------------


def test_wrong_inputs_are_refused() -> None:
    graph, a = add(64, 64), normal(8192)
    with pytest.raises(ShapeError, match="got 1 inputs.*\n.*\n.*2: a .8192 x fp32., c"):
        run(graph, a)
    with pytest.raises(ShapeError, match="input c has 8191 elements"):
        run(graph, a, a[1:])
    with pytest.raises(ShapeError, match="input c has 8192 elements of float64"):
        run(graph, a, a.astype(np.float64))
    with pytest.raises(ShapeError, match="named a, b"):
        run(graph, {"a": a, "b": a})


def test_an_iop_that_breaks_a_rule_does_not_run() -> None:
    graph = add(64, 64)
    tile = ISlice(graph.pointer("ra"), 0, (2, 32))
    broken = graph.replace(body=[IOp("unary", "exp", "fp16", [tile], [tile])])
    with pytest.raises(IGraphError, match="dtype rule"):
        run(broken, normal(8192), normal(8192))
