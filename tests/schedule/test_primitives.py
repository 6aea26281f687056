# SPDX-License-Identifier: Apache-2.0
"""Primitives: their traces replay and round-trip, refusals leave the schedule as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import tvm
import uir_tvm.schedule  # noqa: F401  (attaches the primitives)
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace
from tvm_ffi.structural import structural_equal
from uir_tvm import hardware
from uir_tvm.errors import ScheduleError
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.transaction import given_up_when_refused

from . import functions

CPU = hardware.get("avx512-2core")
#: A device with real groups, as the MLU and CUDA have.
GROUPS = HardwareModel("groups-of-4", "test", 2, 4, 64 * 1024, 256 * 1024, 64)


def map_elementwise(sch: Schedule) -> None:
    """Tile, then stage the sum at reg."""
    loops = sch.map_to_units("y", tile=(4, 32), hardware=CPU)
    sch.move_to_hierarchy("y", "s", "reg", at=loops[1], hardware=CPU)


def stage_parameters(sch: Schedule) -> None:
    """Inline the sum; operand and result through reg."""
    sch.compute_inline(sch.get_sblock("s"))
    block = sch.get_sblock("y")
    loops = sch.map_to_units(block, 2, 1, (4, None), hardware=CPU)
    sch.move_to_hierarchy(block, "x", "reg", at=loops[1], hardware=CPU)
    sch.move_to_hierarchy(block, "y", "reg", at=loops[1], hardware=CPU)


def share_reduction(sch: Schedule) -> None:
    """The units of a group share a row."""
    block = sch.get_sblock("y")
    partial = sch.group_reduce(block, sch.get_loops(block)[-1], 4, hardware=GROUPS)
    assert sch.get(partial).writes[0].source.scope() == "shared"


def broadcast(sch: Schedule) -> None:
    """Every unit of a group reads the bias from sram."""
    sch.compute_inline(sch.get_sblock("s"))
    sch.group_broadcast("y", "bias", 2, hardware=GROUPS)


def share_tiles(sch: Schedule) -> None:
    """Tiles belong to pairs of units that share the columns, and those of the sum that they attach."""
    loops = sch.map_to_units("y", tile=(4, None), group_size=2, hardware=GROUPS)
    block = sch.move_to_hierarchy("y", "s", "reg", at=loops[1], hardware=GROUPS)
    sch.group_share(block, sch.get_loops(block)[-1], 2, hardware=GROUPS)


CASES: list[tuple[Any, Callable[[Schedule], None]]] = [
    (functions.elementwise, map_elementwise),
    (functions.elementwise, stage_parameters),
    (functions.row_sum, share_reduction),
    (functions.elementwise, broadcast),
    (functions.elementwise, share_tiles),
]


@pytest.mark.parametrize("make, apply", CASES, ids=lambda v: v.__name__)
def test_trace_replays_and_round_trips(make: Any, apply: Callable[[Schedule], None]) -> None:
    func = make()
    sch = Schedule(func)
    apply(sch)
    assert "sch." in str(sch.trace)

    replayed = Schedule(func)
    sch.trace.apply_to_schedule(replayed, remove_postproc=False)
    assert structural_equal(sch.mod, replayed.mod)

    from_json = Schedule(func)
    Trace.apply_json_to_schedule(sch.trace.as_json(), from_json)
    assert structural_equal(sch.mod, from_json.mod)


@pytest.mark.parametrize("make, apply", CASES, ids=lambda v: v.__name__)
def test_scheduled_function_computes_the_same(make: Any, apply: Callable[[Schedule], None]) -> None:
    """TVM's own lowering of the function before and after gives the same bits up to reassociation."""
    import numpy as np

    func = make()
    sch = Schedule(func)
    apply(sch)
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal([int(d) for d in p.shape]).astype("float32") for p in func.params]
    results = []
    for mod in (func, sch.mod):
        tensors = [tvm.runtime.tensor(a) for a in arrays]
        tvm.compile(mod, "llvm")["main"](*tensors)
        results.append(tensors[-1].numpy())
    # A shared sum of 128 terms is reassociated: a few units in the last place.
    np.testing.assert_allclose(results[0], results[1], rtol=2e-6, atol=2e-6)


def loops_of(sch: Schedule, block: str) -> list[Any]:
    return list(sch.get_loops(sch.get_sblock(block)))


REFUSALS: dict[str, tuple[Any, Callable[[Schedule], Any], str]] = {
    "tile over capacity": (
        lambda: functions.elementwise(4096, 4096),
        lambda sch: sch.map_to_units("y", tile=(4096, 4096), hardware=CPU),
        "exceeds the memory of a unit",
    ),
    "carried dependence": (
        lambda: functions.recurrence,
        lambda sch: sch.map_to_units("scan", hardware=CPU),
        "carries a dependence",
    ),
    "store not affine": (
        lambda: functions.quadratic_store,
        lambda sch: sch.map_to_units("store", hardware=CPU),
        "not affine",
    ),
    "dimension of size zero": (
        lambda: functions.empty,
        lambda sch: sch.map_to_units("copy", hardware=CPU),
        "size zero",
    ),
    "too many units": (
        functions.elementwise,
        lambda sch: sch.map_to_units("y", num_units=8, hardware=CPU),
        "More units per group",
    ),
    "unknown level": (
        functions.elementwise,
        lambda sch: sch.move_to_hierarchy("y", "s", "l2", hardware=CPU),
        "no level",
    ),
    "no sram": (
        functions.elementwise,
        lambda sch: sch.move_to_hierarchy("y", "s", "sram", hardware=CPU),
        "has no sram",
    ),
    "buffer not touched": (
        functions.elementwise,
        lambda sch: sch.move_to_hierarchy("y", "x", "reg", hardware=CPU),
        "does not touch",
    ),
    "attach at a loop without the consumer": (
        functions.elementwise,
        lambda sch: sch.move_to_hierarchy("y", "s", "reg", at=loops_of(sch, "s")[0], hardware=CPU),
        "does not apply here",
    ),
    "group does not divide": (
        functions.row_sum,
        lambda sch: sch.group_reduce("y", loops_of(sch, "y")[-1], 3, hardware=GROUPS),
        "cannot be shared by 3 units",
    ),
    "sets that do not fill a group": (
        functions.elementwise,
        lambda sch: sch.map_to_units("y", num_units=2, group_size=4, hardware=GROUPS),
        "cannot be shared by 4 units",
    ),
    "a reduction shared as if it were none": (
        functions.row_sum,
        lambda sch: sch.group_share("y", loops_of(sch, "y")[-1], 2, hardware=GROUPS),
        "reduces",
    ),
    "not a reduction loop": (
        functions.row_sum,
        lambda sch: sch.group_reduce("y", loops_of(sch, "y")[0], 2, hardware=GROUPS),
        "does not reduce",
    ),
    "broadcast of a buffer that is not read": (
        functions.elementwise,
        lambda sch: sch.group_broadcast("y", "x", 2, hardware=GROUPS),
        "does not read",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_names_the_reason_and_changes_nothing(name: str) -> None:
    make, apply, words = REFUSALS[name]
    func = make()
    sch = Schedule(func)
    before, trace = sch.mod, str(sch.trace)
    with pytest.raises(ScheduleError) as caught:
        apply(sch)
    assert words in str(caught.value)
    assert caught.value.remedy or caught.value.limit
    assert structural_equal(sch.mod, before)
    if "attach" not in name:  # looking up the loop is itself an instruction
        assert str(sch.trace).count("split") == trace.count("split")


def test_without_a_rehearsal_all_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recipes drop a schedule that is refused: it need not be as it was, and is worked on once."""
    copies: list[Schedule] = []
    whole = Schedule.copy
    monkeypatch.setattr(Schedule, "copy", lambda sch: copies.append(sch) or whole(sch))
    rehearsed, alone = Schedule(functions.elementwise()), Schedule(functions.elementwise())
    map_elementwise(rehearsed)
    assert len(copies) == 2
    with given_up_when_refused():
        map_elementwise(alone)
        for make, apply, words in REFUSALS.values():
            with pytest.raises(ScheduleError, match=words):
                apply(Schedule(make()))
    assert len(copies) == 2
    assert structural_equal(alone.mod, rehearsed.mod) and str(alone.trace) == str(rehearsed.trace)


def test_types_of_arguments_are_checked() -> None:
    """Annotations are taken apart once; what they say still holds for each call."""
    sch = Schedule(functions.elementwise())
    loop = loops_of(sch, "y")[0]
    for _ in range(2):
        with pytest.raises(TypeError, match='"factors.0." has wrong type'):
            sch.split(loop, ["4", None])
        with pytest.raises(TypeError, match='"loop" has wrong type'):
            sch.split(3, [4, None])
    assert len(sch.split(loop, [None, 4])) == 2


def test_what_is_read_without_bounds_is_refused() -> None:
    """TVM asserts that the rows which a tile gathers have bounds; the primitive refuses."""
    sch = Schedule(functions.gathered())
    loops = sch.map_to_units("y", 2, 1, hardware=CPU)
    before = sch.mod
    with pytest.raises(ScheduleError, match="does not apply here"):
        sch.move_to_hierarchy("y", "whole", "reg", at=loops[1], hardware=CPU)
    assert structural_equal(sch.mod, before)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_what_tvm_cannot_inline_stays(dtype: str) -> None:
    """TVM compares an int64 index with an int32 bound and fails a check of its own; a recipe goes on."""
    sch = Schedule(functions.gathered(dtype))
    prepare(sch)
    assert "y" in [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_sblock("root"))]


def test_capacity_refusal_says_need_limit_and_remedy() -> None:
    sch = Schedule(functions.elementwise(4096, 4096))
    with pytest.raises(ScheduleError) as caught:
        sch.map_to_units("y", tile=(4096, 4096), hardware=CPU)
    error = caught.value
    assert str(4096 * 4096 * 4) in error.need
    assert str(CPU.reg_bytes) in error.limit
    assert "tile=" in error.remedy


def test_sets_of_units_have_the_tiles() -> None:
    """15 row tiles for sets of two out of 8 units: 4 sets."""
    sch = Schedule(functions.elementwise())
    pid, *_, inner = sch.map_to_units("y", tile=(4, None), group_size=2, hardware=GROUPS)
    assert dict(sch.get(pid).annotations) == {"uir.parallel": "2,4", "uir.group": 2}
    assert int(sch.get(pid).extent) == 4
    assert int(sch.get(inner).extent) == 50


@pytest.mark.parametrize(("share", "parts"), [(None, [2, 50]), (60, [2, 60]), (100, [2, 50])])
def test_a_share_of_all_columns_leaves_others_theirs(share: int | None, parts: list[int]) -> None:
    """A unit that took the 100 columns of a tile would leave none to the other."""
    sch = Schedule(functions.elementwise())
    *_, inner = sch.map_to_units("y", tile=(4, None), group_size=2, share=share, hardware=GROUPS)
    member = loops_of(sch, "y")[-2]
    assert [int(sch.get(loop).extent) for loop in (member, inner)] == parts


def test_pid_loop_has_no_more_units_than_tiles() -> None:
    sch = Schedule(functions.row_sum(rows=1))
    pid, *_ = sch.map_to_units("y", num_groups=8, hardware=CPU)
    assert sch.get(pid).annotations["uir.parallel"] == "1,1"
