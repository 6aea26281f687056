# SPDX-License-Identifier: Apache-2.0
"""What a function does to its parameters: which are proved to be outputs, which keep the caller's values."""

from __future__ import annotations

import pytest
from tvm.script import tirx as T
from uir_tvm.extract.roles import in_part, roles_of
from uir_tvm.igraph import bounded_isl as isl

from tests.primfuncs.table import STRUCTURES

#: Roles of the parameters of structures of the sweep, in order.
ROLES = {
    "accumulate": "in inout",
    "accumulated_product": "in in inout",
    "scaled_in_place": "inout",
    "first_part": "in inout",
    "every_second": "in inout",
    "upper_triangle": "in inout",
    "where_positive": "in inout",
    "where_else": "in in out",
    "predicated": "in inout",
    "scatter": "in in inout",
    "read_then_write": "in inout out",
    "write_then_read": "in out out",
    "partial_then_read": "in inout out",
    "two_parts": "in out",
    "mirrored_in_place": "inout",
    "reversed_write": "in out",
    "permuted_6d": "in out",
    "scalar": "in out",
    "scalar_sum": "in out",
    "predicated_sum": "in inout",
    "scan_by_choice": "in out",
    "scan_by_branch": "in out",
    "scan_with_first": "in out",
    "arg_max": "in out out",
    "loops_in_a_block": "in out",
}


@pytest.mark.parametrize("name", ROLES)
def test_roles(name: str) -> None:
    func = next(STRUCTURES[name].instances()).function()
    roles = roles_of(func)
    assert " ".join(roles) == ROLES[name]
    written_in_part = in_part(func)
    assert all(
        param not in written_in_part for param, role in zip(func.params, roles, strict=True) if role == "out"
    )


def test_a_loop_of_data() -> None:
    """Iterations whose number is data may not happen: what they write is not sure to be written."""

    @T.prim_func(s_tir=True)
    def some(N: T.Buffer((1,), "int32"), B: T.Buffer((4,), "float32")):
        with T.sblock("all"):
            for i in range(N[0]):
                B[i] = T.float32(1)

    assert roles_of(some) == ["in", "inout"]


def test_a_scan_that_reads_ahead() -> None:
    """An element that is read one iteration before it is written has the caller's value."""

    @T.prim_func(s_tir=True)
    def ahead(A: T.Buffer((9,), "float32"), B: T.Buffer((9,), "float32")):
        for i in range(9):
            with T.sblock("b"):
                v = T.axis.opaque(9, i)
                B[v] = T.if_then_else(v < 8, B[v + 1], T.float32(0)) + A[v]

    assert roles_of(ahead) == ["in", "inout"]


def test_an_extern_call() -> None:
    """What is handed to a function may be read and written by it."""

    @T.prim_func(s_tir=True)
    def called(A: T.Buffer((4,), "float32")):
        with T.sblock("all"):
            T.reads(A[0:4])
            T.writes(A[0:4])
            T.evaluate(T.call_extern("int32", "update", A.data))

    assert roles_of(called) == ["inout"]


def test_isl_is_asked_for_places_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when they are written, and nothing of a loop of one iteration: it takes a tenth of the time."""
    asked: list[str] = []
    read = isl.read_set

    def watched(text: str) -> object:
        asked.append(text)
        return read(text)

    @T.prim_func(s_tir=True)
    def rows(B: T.Buffer((5, 7), "float32")):
        for unit, i, one, j in T.grid(1, 35, 1, 1):
            with T.sblock("row"):
                B[i // 7 + unit, i % 7 + one + j] = T.float32(1)

    monkeypatch.setattr(isl, "read_set", watched)
    monkeypatch.setattr(isl, "read_map", lambda text: pytest.fail(text))
    assert in_part(rows) == set()
    written = [text for text in asked if "exists" in text]
    assert len(written) == 1 and written[0].count("v") == written[0].count("v0")


def test_places_not_found_in_time_are_asked_for_with_times(monkeypatch: pytest.MonkeyPatch) -> None:
    read = isl.read_set

    def spent(text: str) -> object:
        if "exists" in text:
            raise isl.Exhausted(text)
        return read(text)

    monkeypatch.setattr(isl, "read_set", spent)
    func = next(STRUCTURES["permuted_6d"].instances()).function()
    assert roles_of(func) == ROLES["permuted_6d"].split()
