# SPDX-License-Identifier: Apache-2.0
"""The entry points: order of the rules, what hides what, and the definition's own example."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import uir_tvm.verify
from uir_tvm.errors import VerifyError
from uir_tvm.verify import ALL, check, verify
from uir_tvm.verify.access import GraphFacts

from .graphs import clean, graph, only, seed

STORE_BEYOND = "move.reg.dram.fp32 o[4*pid; (1,8); (8,1)], r[0; (1,8); (8,1)]"


def test_the_definitions_wrong_example_is_rejected_with_its_witness():
    """``4096*lid + 128*pid`` reaches address 12223 of 8192 (63*128 + 4096 + 32 + 31)."""
    fault = only(seed(128), "bounds")
    assert fault.what == "move.dram.reg.fp32 reads beyond the end of 'a'."
    assert fault.witness == {"pid": 63, "lid": 1, "row": 1, "col": 31}
    assert "slice a[4096*lid + 128*pid; (2,32); (32,1)]" in fault.where
    assert "move.dram.reg.fp32 b[" in fault.where
    assert fault.need == "address 12223"
    assert fault.limit == "size 8192 elements"
    assert "64*pid instead of 128*pid" in fault.remedy


def test_the_corrected_example_passes():
    clean(seed(64))


def test_verify_raises_the_first_fault():
    with pytest.raises(VerifyError, match="beyond the end of 'a'"):
        verify(seed(128))
    verify(seed(64))


def test_a_rule_left_out_is_not_asked():
    clean(seed(128), tuple(rule for rule in ALL if rule != "bounds"))


def test_an_unknown_rule_is_refused():
    with pytest.raises(ValueError, match="no such rule: speed"):
        check(seed(64), ("speed",))


def test_check_finds_all_faults_of_a_stage_and_hides_later_stages():
    """Two slices leave their pointers; that the output has gaps as well is not asked of such a graph."""
    g = graph(
        f"""
        a = iPointer(dram, fp32, 8, in)
        o = iPointer(dram, fp32, 8, out)
        r = iPointer(reg, fp32, 8)
        move.dram.reg.fp32 r[0; (1,8); (8,1)], a[1; (1,8); (8,1)]
        {STORE_BEYOND}"""
    )
    assert [(f.rule, f.need) for f in check(g)] == [("bounds", "address 8"), ("bounds", "address 19")]


def test_a_usual_kernel_takes_milliseconds():
    """Forty iOps on a ragged tile.  The bound is far above the few milliseconds that it takes, and far below
    what forty calls of isl or any enumeration of the 100000 elements would take for each of the slices."""
    tile = "(8,128); (128,1); rows :100 - 8*pid"
    body = [
        "a = iPointer(dram, fp32, 12800, in)",
        "o = iPointer(dram, fp32, 12800, out)",
        "r = iPointer(reg, fp32, 1024)",
        f"move.dram.reg.fp32 r[0; {tile}], a[1024*pid; {tile}]",
        *[f"unary.exp.fp32 r[0; {tile}], r[0; {tile}]"] * 38,
        f"move.reg.dram.fp32 o[1024*pid; {tile}], r[0; {tile}]",
    ]
    g = graph("\n".join(body), (13, 1))
    clean(g)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        check(g)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.2


@pytest.mark.parametrize("rule", ALL)
def test_every_rule_can_be_asked_alone(rule):
    """Also of a graph that breaks an earlier one: accesses beyond the end, reads of what is not there."""
    g = graph(
        f"""
        o = iPointer(dram, fp32, 8, out)
        r = iPointer(reg, fp32, 8)
        t = iPointer(reg, fp32, 16)
        fill.fp32 r[4*pid; (1,8); (8,1)] [0.0]
        unary.exp.fp32 t[0; (1,8); (8,1)], r[0; (1,8); (8,1)]
        {STORE_BEYOND}"""
    )
    expected = {"bounds": 2, "coverage": 1, "uninitialised": 2, "race": 1}
    assert len(check(g, (rule,))) == expected.get(rule, 0)


def test_a_rule_is_asked_once_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever verified some rules of a graph and then all does not pay twice; a fault is found again."""
    asked: list[str] = []

    def rule(name: str, fault: bool) -> Callable[[GraphFacts], Iterator[VerifyError]]:
        def check(program: GraphFacts) -> Iterator[VerifyError]:
            asked.append(name)
            yield from [VerifyError("no", rule=name)] if fault else []

        return check

    stages = ({"form": (rule("form", False),)}, {"race": (rule("race", True),)})
    monkeypatch.setattr(uir_tvm.verify, "RULE_SETS", stages)
    small = seed(64)
    verify(small, ["form"])
    for _ in range(2):
        with pytest.raises(VerifyError):
            verify(small)
    assert asked == ["form", "race", "race"]
