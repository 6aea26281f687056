# SPDX-License-Identifier: Apache-2.0
"""The registry: a recipe from outside the package is tried like ours; names are checked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tvm.s_tir import Schedule
from uir_tvm import heroes
from uir_tvm.errors import ScheduleError, UirError
from uir_tvm.igraph import HardwareModel
from uir_tvm.pipeline import compile_kernel
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.schedule.decisions import Decisions
from uir_tvm.schedule.prepare import prepare
from uir_tvm.schedule.recipe import Recipe, Registry
from uir_tvm.schedules import RECIPES
from uir_tvm.schedules.demo import Example, from_relax
from uir_tvm.target.registry import TARGETS

HERO = "doubling"


def example() -> Example:
    """x + x."""
    from tvm.relax import op

    return from_relax(lambda x: op.add(x, x), [(40, 96)], lambda x: x + x)


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions) -> None:
    """One row after the other."""
    prepare(sch)
    (block,) = sch.get_child_blocks(sch.get_sblock("root"))
    sch.map_to_units(block, tile=(1, 96), hardware=hw)


@pytest.fixture
def recipe() -> Iterator[Recipe]:
    """A recipe of its own hero, in the registry for one test."""
    heroes.add_hero(HERO, "a number twice")
    made = Recipe(HERO, lambda sch: True, schedule, example, reason="It is a test.")
    RECIPES.add(made, before="elementwise")
    yield made
    RECIPES.remove(HERO)
    del heroes.HEROES[HERO]


@pytest.mark.parametrize("target", TARGETS)
def test_a_recipe_from_outside_schedules_its_kernels(recipe: Recipe, target: str) -> None:
    row = TARGETS[target]
    chosen = row.target("avx512-2core") if target == "uir-cpu" else row.target(None, "model")
    given = recipe.example()
    record = compile_kernel(given.func.with_attr("target", chosen), chosen, "kernel")
    assert record.recipe == HERO and record.refusal is None
    assert [attempt.recipe for attempt in record.attempts] == [HERO]
    (out,) = run_igraph(record.optimized, target, *given.inputs)
    np.testing.assert_allclose(np.reshape(out, (40, 96)), given.expected[0], rtol=1e-6)


def test_an_unknown_hero_is_refused() -> None:
    ours = RECIPES["concat"]
    with pytest.raises(UirError, match="'scan' is no hero"):
        Recipe("scan", ours.matches, ours.schedule, ours.example, reason="")
    with pytest.raises(UirError, match="already"):
        heroes.add_hero("concat", "again")


def test_a_registry_has_one_recipe_for_each_hero() -> None:
    registry = Registry(RECIPES["concat"], RECIPES["fallback"])
    with pytest.raises(ScheduleError, match="already"):
        registry.add(RECIPES["concat"])
    with pytest.raises(ScheduleError, match="No recipe is for the hero 'gather'"):
        registry.add(RECIPES["elementwise"], before="gather")
    registry.add(RECIPES["elementwise"], before="fallback")
    assert registry.heroes == ("concat", "elementwise", "fallback") and len(registry) == 3
    assert registry.remove("concat") is RECIPES["concat"] and len(registry) == 2


def test_every_recipe_says_why_it_is() -> None:
    assert all(recipe.reason.endswith(".") and recipe.hero in heroes.HEROES for recipe in RECIPES)
