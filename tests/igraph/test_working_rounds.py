# SPDX-License-Identifier: Apache-2.0
"""The interpreter leaves out rounds that write nothing, and none that does anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from uir_tvm.errors import InterpreterError
from uir_tvm.igraph import IGraph, interpreter, parse_igraph
from uir_tvm.igraph import working_rounds as working_rounds_module
from uir_tvm.igraph.bound import BoundLoop, bind
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.working_rounds import FEWEST, MOST, working_rounds

from .strategies import random_inputs, runnable_igraphs

#: Rows of 8 in 40 rounds of two rows, of which a unit has 5: as a graph for all sizes is at a small one.
TEXT = """
hardware h { kind = cpu num_groups = 4 num_units = 2 reg_bytes = 65536 sram_bytes = 65536 vector_bytes = 32 }
igraph rows on h parallel (3, 1) {
  x = iPointer(dram, fp32, 120, in)
  y = iPointer(dram, fp32, 120, out)
  a = iPointer(reg, fp32, 16)
  for l in 40 {
    move.dram.reg.fp32 a[0; (2,8); (8,1); rows :5 - 2*l], x[40*pid + 16*l; (2,8); (8,1); rows :5 - 2*l]
    for c in 9 {
      move.reg.dram.fp32 y[40*pid + 16*l + c - 1; (2,1); (8,1); rows :5 - 2*l; cols 1 - c:], \
a[c - 1; (2,1); (8,1); rows :5 - 2*l; cols 1 - c:]
    }
  }
}
"""


def loop_of(graph: IGraph) -> BoundLoop:
    (loop,) = [node for node in bind(graph.body) if isinstance(node, BoundLoop)]
    return loop


def rounds(text: str, *pids: int) -> list[int]:
    return list(working_rounds(loop_of(parse_igraph(text)), [{"pid": pid} for pid in pids or (0,)]))


def test_rounds_beyond_the_end_are_left_out() -> None:
    assert rounds(TEXT) == [0, 1, 2]
    (inner,) = [node for node in loop_of(parse_igraph(TEXT)).body if isinstance(node, BoundLoop)]
    assert list(working_rounds(inner, [{"pid": 1, "l": 2}])) == list(range(1, 9))
    assert list(working_rounds(inner, [{"pid": 1, "l": 3}])) == []


def test_rounds_that_any_unit_works_in_stay() -> None:
    text = TEXT.replace("rows :5 - 2*l", "rows 10*pid - 2*l:10*pid + 3 - 2*l")
    assert rounds(text, 0) == [0, 1]
    assert rounds(text, 1) == [5, 6]
    assert rounds(text, 0, 1, 2) == [0, 1, 5, 6, 10, 11]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # one iOp writes in every round
        ("a[0; (2,8); (8,1); rows :5 - 2*l]", "a[0; (2,8); (8,1)]"),
        # an iOp that acts without writing a box
        ("  }\n}", "    sync.reg a[0; (1,1); (1,1)], a[0; (1,1); (1,1)]\n  }\n}"),
        # fewer rounds than pay
        ("l in 40", f"l in {FEWEST - 1}"),
        # more than are looked at at once
        ("l in 40", f"l in {MOST + 1}"),
        # an expression that leaves 64 bits
        ("rows :5 - 2*l", f"rows :5 - {2**62}*l"),
    ],
)
def test_other_loops_run_to_their_end(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert rounds(text) == list(range(loop_of(parse_igraph(text)).extent))


def test_full_loops_are_asked_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking costs what a few rounds do: of 200 walks of a full loop a few are asked for, then all again."""
    loop, asked = loop_of(parse_igraph(TEXT.replace("rows :5 - 2*l", "rows :pid - 2*l"))), []
    whole = working_rounds_module._busy
    monkeypatch.setattr(working_rounds_module, "_busy", lambda *given: asked.append(1) or whole(*given))
    for _ in range(200):
        assert len(working_rounds(loop, [{"pid": 80}])) == 40
    assert len(asked) < 12
    for _ in range(64):
        few = working_rounds(loop, [{"pid": 3}])
    asked.clear()
    assert [list(working_rounds(loop, [{"pid": 3}])) for _ in range(3)] == [[0, 1]] * 3 and list(few) == [
        0,
        1,
    ]
    assert len(asked) >= 3


def test_faults_of_working_rounds_are_found() -> None:
    array = np.arange(120, dtype=np.float32)
    (out,) = run(parse_igraph(TEXT), array)
    np.testing.assert_array_equal(out, array)
    with pytest.raises(InterpreterError, match="lies at") as caught:
        run(parse_igraph(TEXT.replace("x[40*pid", "x[41*pid")), array)
    assert caught.value.witness["pid"] == 2 and caught.value.witness["l"] == 2


@settings(max_examples=60)
@given(graph=runnable_igraphs())
def test_results_are_those_of_all_rounds(graph: IGraph) -> None:
    inputs = random_inputs(graph)
    found = run(graph, *inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interpreter, "working_rounds", lambda loop, envs: range(loop.extent))
        wanted = run(graph, *inputs)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)
