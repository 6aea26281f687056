# SPDX-License-Identifier: Apache-2.0
"""Loops whose operands and results go by way of sram: five stages, for any number of iterations."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IGraph, IOp, Loop, parse_igraph, walk_body
from uir_tvm.optimize import allocate, insert_sync, multibuffer
from uir_tvm.verify import verify

from ..igraph.strategies import random_inputs
from .aliased import run_aliased
from .equal import assert_same_bits, bits
from .pairs import HARDWARE as TOY

#: Units that wait for whole queues, and whose copies on chip run beside all else.
HARDWARE = TOY.replace(
    "vector_bytes = 64", "vector_bytes = 64\n  figure late_stores = 1\n  figure move_stages = 1"
)
POINTERS = """
  x = iPointer(dram, fp32, 4096, in)
  w = iPointer(dram, fp32, 4096, in)
  y = iPointer(dram, fp32, 4096, inout)
  s = iPointer(sram, fp32, 32)
  v = iPointer(sram, fp32, 32)
  t = iPointer(reg, fp32, 16)
  r = iPointer(reg, fp32, 16)
  u = iPointer(reg, fp32, 16)
"""
MINE, THEIRS = "16*(pid % 2)", "16 - 16*(pid % 2)"


def tile(name: str, at: str = "0") -> str:
    return f"{name}[{at}; (1,16); (16,1)]"


def far(name: str) -> str:
    return tile(name, "32*k + 2048*(pid/2) + 16*(pid % 2)")


LOAD = f"move.dram.sram.fp32 {tile('s', MINE)}, {far('x')}"
ONWARD = f"move.sram.reg.fp32 {tile('t')}, {tile('s', THEIRS)}"
COMPUTE = f"unary.exp.fp32 {tile('u')}, {tile('t')}"
OUT = f"move.reg.sram.fp32 {tile('v', MINE)}, {tile('u')}"
STORE = f"move.sram.dram.fp32 {far('y')}, {tile('v', MINE)}"
#: Bodies -> how many steps their last stage is behind the first, with two places.
BODIES = {
    "five stages": (4, [LOAD, ONWARD, COMPUTE, OUT, STORE]),
    "only operands": (3, [LOAD, ONWARD, COMPUTE, f"move.reg.dram.fp32 {far('y')}, {tile('u')}"]),
    "only results": (3, [f"move.dram.reg.fp32 {tile('t')}, {far('x')}", COMPUTE, OUT, STORE]),
    "results of the other unit": (
        4,
        [LOAD, ONWARD, COMPUTE, OUT, f"move.sram.dram.fp32 {far('y')}, {tile('v', THEIRS)}"],
    ),
    "an operand of its own": (
        4,
        [
            LOAD,
            f"move.dram.reg.fp32 {tile('r')}, {far('w')}",
            ONWARD,
            f"binary.add.fp32 {tile('u')}, {tile('t')}, {tile('r')}",
            OUT,
            STORE,
        ],
    ),
    "two results, one directly": (
        4,
        [
            LOAD,
            ONWARD,
            COMPUTE,
            OUT,
            STORE,
            f"move.reg.dram.fp32 {tile('w', '32*k + 2048*(pid/2) + 16*(pid % 2)')}, {tile('u')}",
        ],
    ),
    "in loops of their own": (
        4,
        [
            LOAD,
            "for i in 2 { move.sram.reg.fp32 t[8*i; (1,8); (8,1)], s[8*i - 16*(pid%2) + 16; (1,8); (8,1)] }",
            "for j in 2 { unary.exp.fp32 u[8*j; (1,8); (8,1)], t[8 - 8*j; (1,8); (8,1)] }",
            OUT,
            STORE,
        ],
    ),
}


def graph(body: list[str], extent: int, stages: int = 2, hardware: str = HARDWARE) -> IGraph:
    inner = "\n".join(body)
    pointers = POINTERS.replace("w = iPointer(dram, fp32, 4096, in)", "w = iPointer(dram, fp32, 4096, inout)")
    text = f"for k in {extent} [pipeline={stages}] {{\n{inner}\n}}"
    return insert_sync.run(
        parse_igraph(f"{hardware}\nigraph g on toy parallel (2, 2) {{\n{pointers}\n{text}\n}}")
    )


def staged(g: IGraph, seeds: int = 1) -> IGraph:
    """The graph in stages: valid, equal to the bit, also with its buffers at their addresses."""
    from uir_tvm.igraph import interpreter

    made = multibuffer.run(g)
    verify(made)
    for seed in range(seeds):
        assert_same_bits(g, made, seed=seed)
    inputs = random_inputs(g, 3)
    wanted = [a.reshape(-1) for a in interpreter.run(g, *inputs, allow_unwritten=True)]
    for old, new in zip(wanted, run_aliased(allocate.run(made), inputs, 3), strict=True):
        assert (bits(old) == bits(new)).all()
    return made


def steady(g: IGraph) -> list[Loop]:
    return [n for n in g.body if isinstance(n, Loop) and "stages" in n.attrs]


def syncs(nodes: object) -> int:
    return sum(iop.op == "sync" for iop, _ in walk_body(nodes))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("extent", [1, 2, 3, 4, 5, 9])
def test_the_values_stay(name: str, extent: int) -> None:
    """For fewer iterations than stages, as many, one more and many."""
    behind, body = BODIES[name]
    made = staged(graph(body, extent))
    assert [int(loop.extent) for loop in steady(made)] == [n for n in [extent - behind] if n > 0]
    for loop in steady(made):
        assert syncs([loop]) <= 1
        assert insert_sync.run(made) is made
    assert (made.pointer("u").size == 32) == (extent > 1)


@pytest.mark.parametrize("extent", [2, 3, 7, 8])
def test_three_places(extent: int) -> None:
    """Operands are two iterations ahead at each of their steps."""
    _, body = BODIES["five stages"]
    made = staged(graph(body, extent, stages=3))
    places = min(extent, 3)
    assert [int(loop.extent) for loop in steady(made)] == [n for n in [extent - 2 * places] if n > 0]


def test_each_stage_is_of_an_iteration_of_its_own() -> None:
    """The steady loop's body: what each stage touches, in one step."""
    made = multibuffer.run(graph(BODIES["five stages"][1], 9))
    (loop,) = steady(made)
    ends = [(str(i.target.pointer.name), str(i.target.offset)) for i in loop.body if isinstance(i, IOp)]
    assert ends == [
        ("y", "16*(pid % 2) + 2048*(pid / 2) + 32*k"),
        ("s", "32*(k % 2) + 16*(pid % 2)"),
        ("v", "32*((k + 1) % 2) + 16*(pid % 2)"),
        ("t", "16*((k + 1) % 2)"),
        ("u", "16*(k % 2)"),
        (ends[-1][0], "0"),
    ]
    assert isinstance(loop.body[-1], IOp) and loop.body[-1].op == "sync"


#: Bodies in which something keeps a hop from having a stage of its own -> how far apart what is left runs.
KEPT = {
    "another iOp reads sram": (
        2,
        [
            LOAD,
            ONWARD,
            f"move.sram.reg.fp32 {tile('r')}, {tile('s', MINE)}",
            f"binary.add.fp32 {tile('r')}, {tile('r')}, {tile('t')}",
            f"binary.add.fp32 s[{MINE}; (1,16); (16,1)], {tile('r')}, {tile('t')}",
            f"move.reg.dram.fp32 {far('y')}, {tile('r')}",
        ],
    ),
    "what was copied is used before": (
        1,
        [
            LOAD,
            f"move.dram.reg.fp32 {tile('r')}, {far('w')}",
            f"unary.exp.fp32 {tile('t')}, {tile('r')}",
            f"move.reg.dram.fp32 {tile('y', '32*k + 2048*(pid/2) + 16*(pid % 2) + 1024')}, {tile('t')}",
            ONWARD,
            f"move.reg.dram.fp32 {far('y')}, {tile('t')}",
        ],
    ),
    "the next iteration reads one of two results": (
        1,
        [
            f"move.dram.reg.fp32 {tile('t')}, {far('x')}",
            f"move.dram.reg.fp32 {tile('r')}, {far('y')}",
            f"binary.add.fp32 {tile('u')}, {tile('t')}, {tile('r')}",
            f"move.reg.dram.fp32 {far('w')}, {tile('u')}",
            f"move.reg.dram.fp32 {tile('y', '32*k + 32 + 2048*(pid/2) + 16*(pid % 2)')}, {tile('u')}",
        ],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_others_use_has_no_stage_of_its_own(name: str) -> None:
    behind, body = KEPT[name]
    made = staged(graph(body, 9), seeds=2)
    assert [int(loop.extent) for loop in steady(made)] == [9 - behind]


def test_results_that_loads_may_not_pass_are_not_late() -> None:
    """An iteration loads what the third one before it has stored: too near for stages of both."""
    load = LOAD.replace(far("x"), tile("y", "32*k + 2048*(pid/2) + 16*(pid % 2)"))
    store = STORE.replace(far("y"), tile("y", "32*k + 96 + 2048*(pid/2) + 16*(pid % 2)"))
    made = staged(graph([load, ONWARD, COMPUTE, OUT, store], 9), seeds=2)
    assert [int(loop.extent) for loop in steady(made)] != [5]


def test_a_loop_that_would_not_fit_has_fewer_stages() -> None:
    """Two places for each of t and u are more than reg holds beside what is alive."""
    hardware = HARDWARE.replace("reg_bytes = 4096", "reg_bytes = 192")
    made = staged(graph(BODIES["five stages"][1], 9, hardware=hardware))
    assert made.pointer("t").size == 16
    assert [int(loop.extent) for loop in steady(made)] == [7]


def test_devices_without_such_copies() -> None:
    """The hops stay where they were."""
    hardware = HARDWARE.replace("  figure move_stages = 1", "")
    made = staged(graph(BODIES["five stages"][1], 9, hardware=hardware))
    assert [int(loop.extent) for loop in steady(made)] == [7]
