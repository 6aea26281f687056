# SPDX-License-Identifier: Apache-2.0
"""Refusals are judged by types and fields; one vocabulary of heroes from the kernel graph to reports."""

from __future__ import annotations

import pytest
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError
from uir_tvm.errors import CodegenCapacityError, CodegenError, PassError, UirError, VerifyCapacityError
from uir_tvm.heroes import HEROES
from uir_tvm.kernel_graph.op_kinds import KINDS, OpKind
from uir_tvm.refusal import Refusal
from uir_tvm.schedules import RECIPES


def by_pass(cause: Exception) -> PassError:
    """What a pass says whose result was refused."""
    error = PassError("What the pass made is refused.", name="hoist")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "lacks_room", "is_fault"),
    [
        (CodegenCapacityError("Anything."), True, False),
        (CodegenError("The reg overflows: there is no room."), False, False),
        (by_pass(VerifyCapacityError("Anything.")), True, False),
        (by_pass(UirError("Anything.")), False, False),
        (TVMScheduleError("Error message: no"), False, False),
        (KeyError("x"), False, True),
    ],
)
def test_what_a_refusal_is(error: Exception, lacks_room: bool, is_fault: bool) -> None:
    """By its class, and by that of its cause, whatever the words are."""
    refusal = Refusal("source", error)
    assert (refusal.lacks_room, refusal.is_fault) == (lacks_room, is_fault)
    assert str(refusal).startswith("source: ") and "\n" not in refusal.reason
    assert refusal.reason.startswith("a fault of the compiler: KeyError") == is_fault


def test_kernels_and_recipes_speak_of_the_same_heroes() -> None:
    assert {kind.kind for kind in KINDS.values()} <= set(HEROES)
    assert {recipe.hero for recipe in RECIPES} <= set(HEROES)
    with pytest.raises(UirError, match="'rowwise' is no hero"):
        OpKind("rowwise")
