# SPDX-License-Identifier: Apache-2.0
"""What holds of an operand is taken over by the next graph, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from uir_tvm.igraph import IGraph, IPointer, ISlice, Loop, make, var
from uir_tvm.igraph.space import Size
from uir_tvm.verify import bounds, check, initialised, valid
from uir_tvm.verify.access import GraphFacts

from .graphs import DEVICE

A, OUT = IPointer("a", "dram", "fp32", 32, "in"), IPointer("o", "dram", "fp32", 32, "out")
R = IPointer("r", "reg", "fp32", 8, "tmp")
PID = var("pid")


def row(pointer: IPointer, offset=0) -> ISlice:
    return ISlice(pointer, offset, (1, 8))


LOAD, STORE = make.move(row(R), row(A, 8 * PID)), make.move(row(OUT, 8 * PID), row(R))


def build(body=(LOAD, STORE), pointers=(A, OUT, R), units=4, **fields) -> IGraph:
    return IGraph("g", DEVICE, 1, units, pointers, body, **fields)


def regions(graph: IGraph) -> list[object]:
    return [region for step in GraphFacts(graph).steps for _, _, region in step.operands]


def rules(graph: IGraph) -> set[str]:
    return {fault.rule for fault in check(graph)}


def test_an_operand_that_stays_keeps_its_region() -> None:
    doubled = make.binary("add", row(R), row(R), row(R))
    first, second = regions(build()), regions(build((LOAD, doubled, STORE)))
    assert [second[k] for k in (0, 1, -2, -1)] == first


def test_another_number_of_units_has_regions_of_its_own() -> None:
    first, second = regions(build()), regions(build(units=2))
    assert len(first) == len(second)
    assert not any(one is other for one in first for other in second)


def test_more_units_leave_a_pointer_that_fewer_did_not() -> None:
    assert not rules(build(units=4))
    assert "bounds" in rules(build(units=5))


def test_the_same_iop_in_a_longer_loop_leaves_its_pointer() -> None:
    body = (make.move(row(R), row(A, 8 * var("k"))), make.move(row(OUT, 8 * var("k")), row(R)))
    assert not rules(build([Loop("k", 4, body)], units=1))
    assert "bounds" in rules(build([Loop("k", 5, body)], units=1))


def test_a_greater_size_leaves_a_pointer_that_a_smaller_one_did_not() -> None:
    out = IPointer("o", "dram", "fp32", 8, "out")
    body = (make.move(row(R), row(A, var("n"))), make.move(row(out), row(R)))
    assert not rules(build(body, (A, out, R), 1, sizes=[Size("n", 0, 24)]))
    assert "bounds" in rules(build(body, (A, out, R), 1, sizes=[Size("n", 0, 25)]))


def test_a_pointer_that_is_listed_no_more_is_a_fault_again() -> None:
    assert not rules(build())
    assert "form" in rules(build(pointers=(A, OUT)))
    other = IPointer("r", "reg", "fp32", 16, "tmp")
    assert "form" in rules(build(pointers=(A, OUT, other)))


def test_a_fault_is_found_each_time() -> None:
    wrong = build(units=5)
    assert rules(wrong) == rules(wrong.replace(name="h")) == {"bounds"}


def test_rules_prove_anew_only_what_a_pass_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What iOps touch, what is valid of it and what was written before, of iOps and pointers that stay."""
    other = IPointer("s", "reg", "fp32", 8, "tmp")
    narrow = ISlice(R, 0, (1, 8), cols=(None, PID + 1))
    body = (LOAD, make.unary("exp", narrow, narrow), STORE)
    asked: list[str] = []

    def counted(name: str, inner: Callable[..., Any], *args: Any) -> Any:
        asked.append(name)
        return inner(*args)

    for module, name in ((valid, "_step_faults"), (initialised, "_faults"), (bounds, "_in_shape")):
        monkeypatch.setattr(module, name, partial(counted, name, getattr(module, name)))
    assert not rules(build(body))
    asked.clear()
    added = make.fill(row(other), 0.0)
    assert not rules(build((*body, added), (A, OUT, R, other)))
    # of the fill alone
    assert sorted(asked) == ["_faults", "_in_shape", "_step_faults"]


def test_what_was_written_before_is_so_no_more_where_iops_change_places() -> None:
    assert not rules(build((LOAD, STORE)))
    assert "uninitialised" in rules(build((STORE, LOAD)))
