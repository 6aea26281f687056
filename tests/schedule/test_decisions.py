# SPDX-License-Identifier: Apache-2.0
"""What recipes decide leaves no trace by default, and is in the trace where schedules are tuned."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm.s_tir import Schedule
from tvm_ffi.structural import structural_equal
from uir_tvm import hardware
from uir_tvm.schedule.annotations import PARALLEL, VECTOR
from uir_tvm.schedule.begin import begin
from uir_tvm.schedule.decisions import MOST_SIZES, OWN, Choice, Sampled, rv_of, tile_sizes
from uir_tvm.schedule.driver import apply_default, run_recipe
from uir_tvm.schedule.row_chain import decide_rows, output_blocks, tile_sides
from uir_tvm.schedule.tile_facts import space_of
from uir_tvm.schedules import RECIPES

from ..tune.recipe_kernels import HARDWARE, kernel
from . import functions

CPU = hardware.get("avx512-2core")


def schedule(func: object = None) -> Schedule:
    return Schedule(functions.elementwise() if func is None else func, debug_mask="none")


def sampled_kinds(sch: Schedule) -> list[str]:
    return [inst.kind.name for inst in sch.trace.insts if inst.kind.name.startswith("Sample")]


def test_own_decisions_are_the_defaults_and_leave_no_trace() -> None:
    sch = schedule()
    (loop, _) = sch.get_loops("y")
    before = len(sch.trace.insts)
    assert OWN.choose(sch, "columns", (1, 2, 4), 4) == 4
    assert OWN.tile(sch, "rows", loop, 7, 60) == 7  # whatever divides: the recipe knows
    assert OWN.fork("form", (0, 1), 1) == 1
    assert not isinstance(OWN.choose(sch, "columns", (1, 2), 2), Choice)
    assert len(sch.trace.insts) == before and not OWN.sampled


def test_a_sampled_number_is_a_number_with_a_variable() -> None:
    sch, decisions = schedule(), Sampled()
    columns = decisions.choose(sch, "columns", (16, 4, 8, 4), 8)
    assert columns == 8 and isinstance(columns, Choice) and rv_of(columns) is columns.rv
    assert int(sch.get(columns.rv)) == 8
    # what is computed of it is a plain number, which stays as it is
    assert not isinstance(columns * 2, Choice) and rv_of(columns * 2) == 16
    (inst,) = [i for i in sch.trace.insts if i.kind.name == "SampleCategorical"]
    assert [int(n) for n in inst.attrs[0]] == [4, 8, 16]
    assert decisions.names == ["columns"]


def test_the_default_is_a_candidate_and_one_candidate_is_no_decision() -> None:
    sch, decisions = schedule(), Sampled()
    assert decisions.choose(sch, "columns", (4, 16), 5) == 5
    assert [int(n) for n in sch.trace.insts[-1].attrs[0]] == [4, 5, 16]
    assert decisions.choose(sch, "rows", (3,), 3) == 3
    assert sampled_kinds(sch) == ["SampleCategorical"] and decisions.names == ["columns"]


def test_a_tile_divides_its_loop() -> None:
    """The nearest divisor below the default: a perfect tile has no other."""
    sch, decisions = schedule(functions.elementwise(60, 100)), Sampled()
    (loop, _) = sch.get_loops("y")
    rows = decisions.tile(sch, "rows", loop, 7, 30)
    assert rows == 6 and isinstance(rows, Choice)
    inst = sch.trace.insts[-1]
    assert list(map(int, sch.trace.decisions[inst])) == [10, 6]
    # others may be as large as is asked for
    assert [int(n) for n in inst.attrs] == [2, 30]


def test_answers_of_forks_are_kept_with_what_was_possible() -> None:
    decisions = Sampled({"form": 3})
    assert decisions.fork("form", (1, 3), 1) == 3 and decisions.fork("order", (0, 1), 0) == 0
    assert decisions.forks == {"form": 3, "order": 0}
    assert set(decisions.answers["form"]) == {1, 3}


def test_what_was_sampled_before_a_restart_is_fixed() -> None:
    sch, decisions = schedule(), Sampled()
    decisions.choose(sch, "columns", (4, 8), 8)
    again = decisions.restart(sch.mod["main"])
    assert decisions.names == [] and not sampled_kinds(again)
    assert decisions.begun is not None and decisions.begun.same_as(sch.mod["main"])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70_000), st.integers(1, 5000), st.integers(1, 1 << 16), st.integers(1, 128))
def test_sizes_are_few_and_apart(extent: int, default: int, most: int, least: int) -> None:
    sizes = tile_sizes(extent, default, most, least)
    assert 1 <= len(sizes) <= MOST_SIZES and sorted(set(sizes)) == list(sizes)
    assert min(default, extent) in sizes
    assert all(least <= s <= min(most, extent) or s == min(default, extent) for s in sizes)
    assert all(b >= 1.4 * a for a, b in zip(sizes, sizes[1:], strict=False))


def test_all_of_a_loop_is_a_size() -> None:
    assert 768 in tile_sizes(768, 64, 1024) and 768 not in tile_sizes(768, 64, 512)


def test_sides_of_a_tile_are_a_quarter_to_four_times_its_own() -> None:
    assert tile_sides(1000, 16, 1000) == [4, 8, 16, 32, 64]
    assert tile_sides(20, 16, 1000) == [4, 8, 16, 20]
    assert tile_sides(1000, 16, 20) == [4, 8, 16]


def test_rows_that_are_a_part_of_a_loop_are_chosen_among_its_divisors() -> None:
    """`map_chain` splits that loop later, so no perfect tile of it can be sampled."""
    sch, decisions = schedule(functions.elementwise(60, 100)), Sampled()
    rows = decide_rows(sch, output_blocks(sch)[-1], 12, 2, 100, decisions)
    assert rows == 2 and sampled_kinds(sch) == ["SampleCategorical"]
    assert [int(n) for n in sch.trace.insts[-1].attrs[0]] == [1, 2, 3, 4, 6, 12]


@pytest.mark.parametrize("target", HARDWARE)
@pytest.mark.parametrize("hero", ["elementwise", "normalization", "transpose", "fallback"])
def test_a_recipe_of_its_own_decisions_samples_nothing(hero: str, target: str) -> None:
    kind, model = HARDWARE[target]
    hw = hardware.get(model, kind)
    name = {"normalization": "softmax", "transpose": "transpose"}.get(hero, "silu")
    recipe = RECIPES[hero]
    func = begin(kernel(name), hw)
    own = run_recipe(recipe, func, hw)
    assert own is not None and not sampled_kinds(own)
    decisions = Sampled()
    sampled = run_recipe(recipe, func, hw, decisions)
    assert sampled is not None and (sampled_kinds(sampled) or recipe.last_resort)
    # the width of vectors too, of every loop over units, where the kind of hardware has several
    script = sampled.mod["main"].script()
    widths = script.count(PARALLEL) if space_of(hw).vectors and not recipe.last_resort else 0
    assert script.count(VECTOR) == widths and ("vector_bytes" in decisions.names) == (widths > 0)


def test_columns_first_numbers_all_rows_of_a_column_tile_together() -> None:
    """Unit 0 of two takes the left half of all rows, not all columns of the upper half."""

    def first_unit(columns_first: bool) -> str:
        sch = schedule(functions.elementwise(4, 64))
        sch.compute_inline("s")
        sch.map_to_units("y", 2, 1, (1, 32), split_columns=True, columns_first=columns_first, hardware=CPU)
        return str(sch.mod["main"].script())

    rows, columns = first_unit(False), first_unit(True)
    assert "// 2" in rows and "% 2 * 32" in rows
    assert "% 4" in columns and "// 4 * 32" in columns


def test_default_schedules_do_not_depend_on_tuning() -> None:
    """Making design spaces leaves nothing behind that changes what the compiler makes afterwards."""
    from uir_tvm.tune.spaces import design_spaces

    func = kernel("layer_norm")
    before = apply_default(func, CPU)
    design_spaces(func, CPU)
    assert structural_equal(before, apply_default(func, CPU))
