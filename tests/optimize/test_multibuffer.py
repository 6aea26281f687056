# SPDX-License-Identifier: Apache-2.0
"""Multi-buffering: valid, the same values also with buffers at their addresses, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from uir_tvm.errors import PassError
from uir_tvm.igraph import IGraph, Loop, parse_igraph, print_igraph, walk_body
from uir_tvm.optimize import allocate, insert_sync, multibuffer, optimize
from uir_tvm.verify import verify

from ..corpus import by_hand
from ..igraph.strategies import random_inputs, runnable_igraphs
from ..target.cpu import support
from .aliased import run_aliased
from .equal import assert_same_bits, bits
from .pairs import HARDWARE

POINTERS = """
  x = iPointer(dram, fp32, 4096, in)
  w = iPointer(dram, fp32, 4096, in)
  y = iPointer(dram, fp32, 4096, inout)
  t = iPointer(reg, fp32, 32)
  v = iPointer(reg, fp32, 32)
  u = iPointer(reg, fp32, 32)
  acc = iPointer(reg, fp32, 32)
"""


def tile(name: str) -> str:
    return f"{name}[0; (2,16); (16,1)]"


def graph(body: str, parallel: str = "(2, 1)", pointers: str = POINTERS, hardware: str = HARDWARE) -> IGraph:
    return parse_igraph(f"{hardware}\nigraph g on toy parallel {parallel} {{\n{pointers}\n{body}\n}}")


def loops(g: IGraph) -> Iterator[Loop]:
    def walk(body: object) -> Iterator[Loop]:
        for node in body:  # type: ignore[attr-defined]
            if isinstance(node, Loop):
                yield node
                yield from walk(node.body)

    return walk(g.body)


def staged(g: IGraph) -> IGraph:
    """The graph in stages: valid, equal to the bit, also with its buffers at their addresses."""
    made = multibuffer.run(g)
    assert made is not g
    verify(made)
    for seed in range(2):
        assert_same_bits(g, made, seed=seed)
    inputs = random_inputs(g, 3)
    for old, new in zip(_run(g, inputs), run_aliased(allocate.run(made), inputs, 3), strict=True):
        assert (bits(old) == bits(new)).all()
    assert multibuffer.run(made) is made
    return made


def _run(g: IGraph, inputs):
    from uir_tvm.igraph import interpreter

    return [a.reshape(-1) for a in interpreter.run(g, *inputs, allow_unwritten=True)]


#: Bodies of a loop over k in {n} that store to y[32*k + 1024*pid]; sizes of x are ample.
BODIES = {
    "load, compute, store": f"""
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      unary.exp.fp32 {tile("u")}, {tile("t")}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
    """,
    "in place": f"""
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      unary.exp.fp32 {tile("t")}, {tile("t")}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("t")}
    """,
    "two operands, the second after a computation": f"""
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      unary.abs.fp32 {tile("u")}, {tile("t")}
      move.dram.reg.fp32 {tile("v")}, w[32*k; (2,16); (16,1)]
      binary.add.fp32 {tile("u")}, {tile("u")}, {tile("v")}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
    """,
    "one register for two operands": f"""
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      unary.abs.fp32 {tile("u")}, {tile("t")}
      move.dram.reg.fp32 {tile("t")}, w[32*k; (2,16); (16,1)]
      binary.add.fp32 {tile("u")}, {tile("u")}, {tile("t")}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
    """,
    "padded, then filled ragged loads": f"""
      move.dram.reg.fp32 {tile("t")}, x[32*k; (2,16); (16,1); rows :5 - 2*k; cols :16 - k] [pad=1.5]
      fill.fp32 {tile("v")} [2.0]
      move.dram.reg.fp32 v[0; (2,16); (16,1); rows :3 - k], w[32*k; (2,16); (16,1); rows :3 - k]
      binary.add.fp32 {tile("u")}, {tile("t")}, {tile("v")}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
    """,
    "loads and uses in loops of their own": f"""
      for i in 2 {{
        move.dram.reg.fp32 t[16*i; (1,16); (16,1)], x[32*k + 16*i; (1,16); (16,1)]
      }}
      for j in 2 {{
        unary.exp.fp32 u[16*j; (1,16); (16,1)], t[16 - 16*j; (1,16); (16,1)]
      }}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
    """,
    "a running sum": f"""
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      binary.add.fp32 {tile("acc")}, {tile("acc")}, {tile("t")}
      move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("acc")}
    """,
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("stages, extent", [(2, 2), (2, 5), (3, 3), (3, 7), (4, 5)])
def test_the_values_stay(name: str, stages: int, extent: int) -> None:
    body = f"fill.fp32 {tile('acc')} [0.5]\n" if "acc" in BODIES[name] else ""
    g = graph(body + f"for k in {extent} [pipeline={stages}] {{ {BODIES[name]} }}".replace("\n\n", "\n"))
    made = staged(g)
    (steady,) = [loop for loop in loops(made) if "stages" in loop.attrs]
    assert (steady.extent, steady.attrs["stages"]) == (extent - stages + 1, stages)
    # as often as before, but for what is never loaded in vain
    assert _count(made, "move") == _count(g, "move")
    assert made.pointer("t").size == 32 * stages
    if "acc" in BODIES[name]:
        assert made.pointer("acc").size == 32


#: A device whose cores wait for all that a pipe was given.
LATE = HARDWARE.replace("vector_bytes = 64", "vector_bytes = 64\n  figure late_stores = 1")


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("stages, extent", [(2, 2), (2, 5), (3, 3), (3, 7)])
def test_stores_run_late(name: str, stages: int, extent: int) -> None:
    """The same values, and the loop's body begins with the store of the iteration before."""
    body = f"fill.fp32 {tile('acc')} [0.5]\n" if "acc" in BODIES[name] else ""
    loop = f"for k in {extent} [pipeline={stages}] {{ {BODIES[name]} }}".replace("\n\n", "\n")
    g = graph(body + loop, hardware=LATE)
    made = staged(g)
    steady = [loop for loop in loops(made) if "stages" in loop.attrs]
    # what holds a value from one iteration to the next is stored where it stands
    late = "acc" not in BODIES[name]
    assert [loop.extent for loop in steady] == [n for n in [extent - stages + 1 - late] if n > 0]
    for loop in steady:
        first = next(iop for iop, _ in walk_body([loop]))
        assert (first.target.pointer.level == "dram") == late
    assert _count(made, "move") == _count(g, "move")


def test_a_store_that_others_look_at_stays() -> None:
    """What the next iteration reads of dram must have been stored by then."""
    body = f"""
      for k in 4 [pipeline=2] {{
        move.dram.reg.fp32 {tile("t")}, x[32*k; (2,16); (16,1)]
        move.dram.reg.fp32 {tile("v")}, y[1024*pid; (2,16); (16,1)]
        binary.add.fp32 {tile("u")}, {tile("t")}, {tile("v")}
        move.reg.dram.fp32 y[1024*pid; (2,16); (16,1)], {tile("u")}
      }}"""
    made = staged(graph(body, hardware=LATE))
    (steady,) = [loop for loop in loops(made) if "stages" in loop.attrs]
    assert steady.extent == 3


def _count(g: IGraph, op: str) -> int:
    total = 0
    for iop, around in g.walk():
        runs = 1
        for loop in around:
            runs *= int(loop.extent)
        total += runs * (iop.op == op)
    return total


def test_a_register_that_lives_outside_keeps_its_own() -> None:
    """t is used before and after the loop: what is in flight gets another pointer."""
    around = f"""
      move.dram.reg.fp32 {tile("t")}, w[0; (2,16); (16,1)]
      move.reg.dram.fp32 y[2048 + 32*pid; (2,16); (16,1)], {tile("t")}
    """
    g = graph(f"{around} for k in 4 [pipeline=2] {{ {BODIES['in place']} }} {around.replace('2048', '2176')}")
    made = staged(g)
    assert (made.pointer("t").size, made.pointer("t_k").size) == (32, 64)


def test_a_nested_loop_is_staged_in_every_iteration_of_the_outer_one() -> None:
    inner = BODIES["load, compute, store"].replace("32*k", "32*k + 128*o")
    staged(graph(f"for o in 3 {{ for k in 4 [pipeline=3] {{ {inner} }} }}"))


def test_both_loops_of_a_nest() -> None:
    body = f"""
      for o in 3 [pipeline=2] {{
        move.dram.reg.fp32 {tile("v")}, w[32*o; (2,16); (16,1)]
        for k in 4 [pipeline=2] {{
          move.dram.reg.fp32 {tile("t")}, x[32*k + 128*o; (2,16); (16,1)]
          binary.add.fp32 {tile("u")}, {tile("t")}, {tile("v")}
          move.reg.dram.fp32 y[32*k + 128*o + 1024*pid; (2,16); (16,1)], {tile("u")}
        }}
      }}"""
    made = staged(graph(body))
    assert made.pointer("v").size == 64


def test_places_keep_the_alignment_that_moves_state() -> None:
    """20 elements of 4 bytes: the second place starts at the next multiple of 64 bytes."""
    pointers = POINTERS.replace("t = iPointer(reg, fp32, 32)", "t = iPointer(reg, fp32, 20)")
    body = """
      for k in 4 [pipeline=2] {
        move.dram.reg.fp32 t[0; (1,20); (20,1)], x[32*k; (1,20); (20,1)] [align=128]
        move.reg.dram.fp32 y[32*k + 1024*pid; (1,20); (20,1)], t[0; (1,20); (20,1)] [align=128]
      }"""
    made = staged(graph(body, pointers=pointers))
    assert made.pointer("t").size == 32 + 20


def test_nothing_else_takes_a_place_that_may_still_be_stored() -> None:
    """u is stored at the end of an iteration; v, which is done with by then, must not begin the next in u."""
    body = f"""
      for k in 4 [pipeline=2] {{
        move.dram.reg.fp32 {tile("t")}, x[32*k; (2,16); (16,1)]
        unary.exp.fp32 {tile("v")}, {tile("t")}
        reduce.add.row.unit.fp32 acc[0; (2,1); (1,1)], {tile("v")}
        broadcast.row.unit.fp32 {tile("u")}, acc[0; (2,1); (1,1)]
        move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
      }}"""
    made = allocate.run(staged(graph(body)))
    at = {str(k): int(v) for k, v in made.attrs["addresses"].items()}
    assert at["v"] + 128 <= at["u"] or at["u"] + 256 <= at["v"]


def test_shared_tiles_need_one_barrier_in_a_step() -> None:
    """Units load a tile of the operand together; single-buffered that takes two barriers in a step."""
    entry = next(e for e in by_hand.entries() if e.name.endswith("product_shared"))
    body = [
        Loop(n.var, n.extent, n.body, {"pipeline": 2}) if isinstance(n, Loop) else n for n in entry.graph.body
    ]
    made = staged(entry.graph.replace(body=body))
    (steady,) = [loop for loop in loops(made) if "stages" in loop.attrs]

    def barriers(loop: Loop) -> int:
        return sum(iop.op == "sync" for iop, _ in walk_body(loop.body))

    (before,) = [loop for loop in loops(entry.graph) if any(i.op == "sync" for i, _ in walk_body([loop]))]
    assert (barriers(before), barriers(steady)) == (2, 1)
    assert insert_sync.run(made) is made


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(runnable_igraphs(), st.integers(2, 3), st.integers(0, 2**16))
def test_random_operators(g: IGraph, stages: int, seed: int) -> None:
    """Every one has a loop that loads and stores, some shorter than the stages, of which no more are made."""
    (loop,) = g.body
    made = multibuffer.run(g.replace(body=[Loop(loop.var, loop.extent, loop.body, {"pipeline": stages})]))
    verify(made)
    assert_same_bits(g, made, seed=seed)
    least = min(stages, int(loop.extent))
    assert [x.attrs["stages"] for x in loops(made) if "stages" in x.attrs] == ([least] if least > 1 else [])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(runnable_igraphs(), st.integers(2, 3), st.integers(0, 2**16))
def test_all_passes_together(g: IGraph, stages: int, seed: int) -> None:
    """Loops that other passes have cut, hoisted from or widened; run in the bytes that allocate gives."""
    (loop,) = g.body
    asked = g.replace(body=[Loop(loop.var, loop.extent, loop.body, {"pipeline": stages})])
    made = optimize(asked).graph
    assert not [x for x in loops(made) if "pipeline" in x.attrs]
    inputs = random_inputs(g, seed)
    for old, new in zip(_run(g, inputs), run_aliased(made, inputs, seed), strict=True):
        assert (bits(old) == bits(new)).all()


@pytest.mark.parametrize(
    "name", ["load, compute, store", "padded, then filled ragged loads", "a running sum"]
)
def test_the_stages_run_on_the_cpu(name: str) -> None:
    body = f"fill.fp32 {tile('acc')} [0.5]\n" if "acc" in BODIES[name] else ""
    made = multibuffer.run(graph(body + f"for k in 5 [pipeline=3] {{ {BODIES[name]} }}"))
    support.check(made, random_inputs(made, 5))


LOAD = f"move.dram.reg.fp32 {tile('t')}, x[32*k; (2,16); (16,1)]"
STORE = f"move.reg.dram.fp32 y[32*k + 1024*pid; (2,16); (16,1)], {tile('u')}"

#: body of the program -> words of the refusal
REFUSED = {
    "one stage": (f"for k in 4 [pipeline=1] {{ {LOAD} }}", "asks for 1 stages"),
    "no load": (f"for k in 4 [pipeline=2] {{ fill.fp32 {tile('u')} [0.0]\n {STORE} }}", "no move from dram"),
    "loads into a value of the iteration before": (
        f"fill.fp32 {tile('t')} [0.0]\n"
        f"for k in 4 [pipeline=2] {{ unary.abs.fp32 {tile('u')}, {tile('t')}\n {LOAD}\n {STORE} }}",
        "which an iOp before it in the body uses",
    ),
    "what is loaded is read after the loop": (
        f"for k in 4 [pipeline=2] {{ {LOAD}\n unary.abs.fp32 {tile('u')}, {tile('t')}\n {STORE} }}\n"
        f"move.reg.dram.fp32 y[2048 + 32*pid; (2,16); (16,1)], {tile('t')}",
        "or beyond the loop",
    ),
    "a chain through dram": (
        "for k in 4 [pipeline=2] {\n"
        f"move.dram.reg.fp32 {tile('t')}, z[32*k; (2,16); (16,1)]\n"
        f"move.reg.dram.fp32 z[32*k + 32; (2,16); (16,1)], {tile('t')} }}",
        "which is loaded after it",
    ),
    "a barrier of all units": (
        f"for k in 4 [pipeline=2] {{ {LOAD}\n sync.dram z[0; (1,4); (4,1)], z[0; (1,4); (4,1)] }}",
        "barrier of all units",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_why(name: str) -> None:
    body, words = REFUSED[name]
    pointers = POINTERS.replace("  t =", "  z = iPointer(dram, fp32, 4096)\n  t =")
    with pytest.raises(PassError) as caught:
        multibuffer.run(graph(body, pointers=pointers))
    assert words in str(caught.value)
    assert caught.value.need and caught.value.remedy


def test_updates_in_place_do_not_meet() -> None:
    """Loads of an inout run ahead of stores to other elements of it."""
    pointers = POINTERS.replace("x = iPointer(dram, fp32, 4096, in)", "x = iPointer(dram, fp32, 4096, inout)")
    body = f"""for k in 4 [pipeline=2] {{
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      unary.exp.fp32 {tile("u")}, {tile("t")}
      move.reg.dram.fp32 x[32*k + 1024*pid; (2,16); (16,1)], {tile("u")}
    }}"""
    pointers = "\n".join(line for line in pointers.splitlines() if "y =" not in line and "w =" not in line)
    staged(graph(body, pointers=pointers))


@pytest.mark.parametrize("rounds", ["pid + 1", "2*pid + 1", "2", "3"])
def test_a_loop_that_units_end_loads_one_round_ahead(rounds: str) -> None:
    """What leads out of it is the unit's last round, wherever that is."""
    body = f"""
    fill.fp32 {tile("acc")} [0.0]
    for k in 3 [pipeline=3, rounds={rounds}] {{
      move.dram.reg.fp32 {tile("t")}, x[32*k + 1024*pid; (2,16); (16,1)]
      binary.add.fp32 {tile("acc")}, {tile("acc")}, {tile("t")}
    }}
    move.reg.dram.fp32 y[1024*pid; (2,16); (16,1)], {tile("acc")}
    """
    made = staged(graph(body))
    (loop,) = loops(made)
    assert (loop.extent, loop.attrs["stages"]) == (2, 2)
    assert loop.attrs["rounds"] == parse_igraph(print_igraph(graph(body))).body[1].attrs["rounds"] - 1


def test_a_loop_that_units_end_is_alone_where_nothing_can_be_loaded_ahead() -> None:
    body = f"""
    for k in 3 [pipeline=2, rounds=pid + 1] {{
      binary.add.fp32 {tile("t")}, {tile("t")}, {tile("t")}
    }}
    """
    made = multibuffer.run(graph(f"fill.fp32 {tile('t')} [1.0]" + body))
    (loop,) = loops(made)
    assert (loop.extent, sorted(loop.attrs)) == (3, ["rounds"])
