# SPDX-License-Identifier: Apache-2.0
"""PrimFuncs of many structures compute at both doors of every target what TVM's LLVM lowering computes.

By default every structure runs on uir-cpu, some of every kind on the host models of the devices; all extents
and dtypes on all targets with ``UIR_TEST_ALL=1``, as in ``scripts/sweep_primfuncs.py``.
"""

from __future__ import annotations

import os
import re

import pytest
from uir_tvm.target.registry import TARGETS

from tests.asked import in_turn

from . import in_place
from .doors import DOORS, attempt
from .structure import Instance
from .table import FALL_BACKS, STRUCTURES

ALL = bool(os.environ.get("UIR_TEST_ALL"))
#: What the device targets run by default: each shows something that once went wrong, or a kind of its own.
ON_DEVICES = (
    "first_part",
    "where_positive",
    "scatter",
    "reversed_columns",
    "predicated_sum",
    "scan_by_choice",
    "loops_in_a_block",
    "accumulate_then_mirrored",
)
#: Updates of what narrow floats hold: computed with in fp32, they once began from nothing.
NARROW_UPDATES = ("accumulated_product", "decayed_rows", "accumulate_then_read")


def _instances(structures: tuple[str, ...]) -> list[Instance]:
    every = [list(STRUCTURES[name].instances()) for name in structures]
    return [instance for found in every for instance in (found if ALL else found[:1])]


def check(instance: Instance, target: str, door: str) -> None:
    """It is right, by an iGraph unless it is listed that TVM's own lowering takes it."""
    found = attempt(instance, target, door)
    reason = FALL_BACKS.get(instance.structure.name)
    assert found.state == ("right" if reason is None else "fallback"), found
    assert reason is None or re.search(reason, found.detail), found


@pytest.mark.parametrize("instance", _instances(tuple(STRUCTURES)), ids=lambda i: i.name)
def test_on_the_cpu(instance: Instance) -> None:
    for door in DOORS if ALL or instance.structure in in_place.STRUCTURES else ("uir_tvm.compile",):
        check(instance, "uir-cpu", door)


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "uir-cpu"])
@pytest.mark.parametrize(
    "instance", _instances(tuple(STRUCTURES) if ALL else ON_DEVICES), ids=lambda i: i.name
)
def test_on_a_device(instance: Instance, target: str) -> None:
    for door in DOORS if ALL else ("uir_tvm.compile",):
        check(instance, target, door)


@pytest.mark.parametrize(
    ("name", "target"), in_turn(NARROW_UPDATES, [name for name in TARGETS if name != "uir-cpu"], always=0)
)
def test_narrow_updates_on_a_device(name: str, target: str) -> None:
    structure = STRUCTURES[name]
    check(Instance(structure, structure.sizes[0], "float16"), target, "uir_tvm.compile")
