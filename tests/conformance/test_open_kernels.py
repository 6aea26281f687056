# SPDX-License-Identifier: Apache-2.0
"""One operator of each recipe with an open outermost size, on every target: right at every size."""

from __future__ import annotations

import os

import numpy as np
import pytest
from uir_tvm.schedules import RECIPES
from uir_tvm.target.registry import TARGETS

from tests.asked import in_turn
from tests.open_functions import OPEN, kernel_of, run_at

ALL = bool(os.environ.get("UIR_TEST_ALL"))
#: Nothing, one, around small tiles, primes, around larger tiles; fewer where a host model is slow.
SIZES = (0, 1, 2, 3, 5, 8, 9, 13, 64, 65, 101)
FEW = (0, 1, 9, 65)
#: What host models run by default, each on one of them in turn: one operator of each recipe, and two sizes.
QUICK = [*{function.hero: name for name, function in OPEN.items()}.values(), "two sizes"]
CASES = in_turn(OPEN, TARGETS, may=lambda name, target: ALL or target == "uir-cpu" or name in QUICK)
#: Recipes without such an operator, and why.
WITHOUT = {
    "attention": "its length is an inner dimension: test_open_rows has it",
    "phases": "it reduces over the open dimension",
    "update": "what it does not write keeps its values: tests/runtime/test_executable_state.py has it",
    "fallback": "a loop of open length on one unit",
}


@pytest.mark.compares_itself(but=("uir-cpu",))
@pytest.mark.parametrize(("name", "target"), CASES)
def test_one_kernel_for_all_sizes(name: str, target: str) -> None:
    function = OPEN[name]
    kernel = kernel_of(function.func(), target)
    for n in SIZES if ALL or target == "uir-cpu" else FEW:
        sizes = {"n": n, **({"m": n // 2 + 1} if "m" in function.sizes else {})}
        inputs = function.inputs(sizes)
        found, want = run_at(kernel, inputs, function.reference(*inputs), target)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4, err_msg=f"n = {n}")


def test_every_recipe_has_an_operator_or_a_reason() -> None:
    heroes = {function.hero for function in OPEN.values()}
    assert heroes | set(WITHOUT) == {recipe.hero for recipe in RECIPES}
    assert not heroes & set(WITHOUT)
