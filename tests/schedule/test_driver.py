# SPDX-License-Identifier: Apache-2.0
"""The driver: recipes in order, their forms, smaller tiles before either is given up; all is recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from tvm.s_tir import Schedule
from uir_tvm import hardware
from uir_tvm.errors import CapacityError, CodegenError, NoRecipeError, ScheduleError
from uir_tvm.refusal import Refusal
from uir_tvm.schedule.driver import Candidate, Driver
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.smaller import PREFERRED_SHRINKS, SHRINKS
from uir_tvm.schedules import RECIPES

from . import functions

CPU = hardware.get("avx512-2core")


@attrs.frozen
class Made:
    """What a planted stage says of a candidate."""

    candidate: Candidate
    refusal: Refusal | None = None
    lacked_room: bool = False


def refused(error: Exception, stage: str = "igraph") -> Callable[[Candidate], Made]:
    """A stage that refuses everything."""
    refusal = Refusal(stage, error)
    return lambda candidate: Made(candidate, refusal, refusal.lacks_room)


def named(hero: str, **fields: Any) -> Recipe:
    """A recipe that takes everything."""
    nothing = RECIPES["elementwise"]
    return Recipe(hero, lambda sch: True, nothing.schedule, nothing.example, reason="a test", **fields)


def run(build: Callable[[Candidate], Made], *recipes: Recipe) -> tuple[Made, list[tuple[str, str, int]]]:
    """What the driver returns, and what it tried."""
    driver = Driver(functions.elementwise(), CPU, build, recipes)
    made = driver.run()
    return made, [(a.recipe, a.form, a.shrink) for a in driver.attempts]


def test_what_is_taken_ends_the_search() -> None:
    made, tried = run(Made, named("elementwise"), named("concat"))
    assert made.candidate.recipe.hero == "elementwise" and tried == [("elementwise", "", 1)]


def test_forms_come_before_the_next_recipe() -> None:
    """A refusal that smaller tiles do not mend: each form once, then the next recipe."""
    two = named("elementwise", forms=({}, {"flat": (0, 1)}))
    made, tried = run(refused(CodegenError("no")), two, named("concat"))
    assert tried == [("elementwise", "", 1), ("elementwise", "flat 0", 1), ("concat", "", 1)]
    assert made.candidate.recipe is two and not made.candidate.form


def test_tiles_shrink_before_a_form_is_given_up() -> None:
    """All sizes of the recipe, too: without them there is no kernel."""
    made, tried = run(refused(CapacityError("full")), named("elementwise"), named("concat"))
    assert [shrink for hero, _, shrink in tried if hero == "elementwise"] == [1, *SHRINKS]
    assert made.candidate.shrink == 1

    def with_room(candidate: Candidate) -> Made:
        made = refused(CapacityError("full"))(candidate)
        return made if candidate.shrink < SHRINKS[1] else Made(candidate)

    made, tried = run(with_room, named("elementwise"), named("concat"))
    assert made.candidate.shrink == SHRINKS[1] and made.candidate.own_sizes and len(tried) == 3


def test_a_pass_without_room_asks_for_smaller_preferred_tiles_alone() -> None:
    """There is a kernel: a recipe's own sizes stay, and the largest tiles are taken where none has room."""
    made, tried = run(lambda candidate: Made(candidate, None, True), named("elementwise"))
    assert [shrink for *_, shrink in tried] == [1, *PREFERRED_SHRINKS]
    assert made.candidate.shrink == 1 and not made.candidate.own_sizes


def test_a_fault_of_the_compiler_ends_the_search() -> None:
    made, tried = run(refused(AssertionError("never")), named("elementwise"), named("concat"))
    assert made.refusal is not None and made.refusal.is_fault and len(tried) == 1


def test_the_last_resort_does_not_follow_a_printer() -> None:
    """What a printer refuses runs faster on the host than on one unit."""
    last = named("fallback", last_resort=True)
    assert len(run(refused(CodegenError("no"), "source"), named("elementwise"), last)[1]) == 1
    assert len(run(refused(CodegenError("no"), "igraph"), named("elementwise"), last)[1]) == 2


def test_where_nothing_can_be_scheduled_the_reasons_are_told() -> None:
    build = refused(ScheduleError("It is too round."), "tir")
    with pytest.raises(NoRecipeError) as caught:
        run(build, named("elementwise"), named("concat"))
    assert caught.value.need == "elementwise: It is too round.; concat: It is too round."


def test_every_refusal_is_recorded_with_its_type() -> None:
    driver = Driver(functions.elementwise(), CPU, refused(CodegenError("no", need="x"), "source"), RECIPES)
    driver.run()
    attempt = driver.attempts[0]
    assert (attempt.stage, attempt.refused, attempt.reason) == ("source", "CodegenError", "no")
    assert attempt.to_json()["recipe"] == "elementwise"


#: Functions beside a recipe's example of which other questions are asked.
OTHERS = {"reduction": functools.partial(functions.row_sum, 1, 1 << 20)}


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.hero)
def test_forms_answer_forks_that_recipes_ask_for(recipe: Recipe) -> None:
    """A form whose fork nobody asks for would be the recipe's own once more."""
    from uir_tvm.schedule.begin import begin
    from uir_tvm.schedule.decisions import Sampled
    from uir_tvm.schedule.driver import run_recipe

    asked: set[str] = set()
    examples = [recipe.example().func, *(few() for hero, few in OTHERS.items() if hero == recipe.hero)]
    for name, kind in (("avx512-2core", "cpu"), ("a100", "cuda"), ("910b2", "ascend"), ("mlu370-x8", "bang")):
        for func in examples:
            hw, sampled = hardware.get(name, kind), Sampled()
            run_recipe(recipe, begin(func, hw), hw, sampled)
            asked |= set(sampled.forks)
    assert {name for form in recipe.forms for name in form} <= asked


def test_matching_changes_nothing() -> None:
    """All recipes are asked with one schedule."""
    for recipe in RECIPES:
        sch = Schedule(recipe.example().func)
        before = sch.mod["main"]
        for other in RECIPES:
            other.matches(sch)
        assert sch.mod["main"].same_as(before)
