# SPDX-License-Identifier: Apache-2.0
"""Recipes: the right one is chosen, and TVM's own lowering of what it makes computes what NumPy says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax import op

from uir_tvm import hardware
from uir_tvm.schedule import apply_default, is_scheduled
from uir_tvm.schedule.demo import TOLERANCE, Example, from_relax
from uir_tvm.schedules import RECIPES

CPU = hardware.get("avx512-2core")


def run_stock(func: Any, example: Example) -> list[np.ndarray]:
    """TVM's own lowering of a (scheduled) function on the example's inputs."""
    params = func.params[len(example.inputs) :]
    outputs = [tvm.runtime.empty([int(d) for d in p.shape], str(p.dtype)) for p in params]
    tvm.compile(func.with_attr("global_symbol", "main"), "llvm")["main"](
        *[tvm.runtime.tensor(a) for a in example.inputs], *outputs
    )
    return [o.numpy() for o in outputs]


def assert_right(func: Any, example: Example) -> None:
    for got, want in zip(run_stock(func, example), example.expected, strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        assert np.abs(got.astype("float64") - want).max(initial=0) <= TOLERANCE * scale


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.HERO)
def test_example_gets_its_recipe_and_is_right(recipe: Any) -> None:
    example = recipe.example()
    scheduled = apply_default(example.func, CPU)
    assert scheduled.attrs["uir.recipe"] == recipe.HERO
    assert is_scheduled(scheduled) or recipe.HERO == "fallback"
    assert_right(scheduled, example)


def test_rows_longer_than_a_units_memory_are_walked_in_chunks() -> None:
    """Log-softmax over rows that exceed reg: no tile is wider than the chunk, the numbers stay right."""
    columns = CPU.reg_bytes // 4 + 1000

    def reference(x: Any) -> Any:
        shifted = x - x.max(-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))

    example = from_relax(lambda x: op.nn.log_softmax(x, axis=-1), [(3, columns)], reference)
    scheduled = apply_default(example.func, CPU)
    assert scheduled.attrs["uir.recipe"] == "normalization"
    assert "uir.loop" in str(scheduled)
    assert_right(scheduled, example)


def test_a_scheduled_function_is_left_alone() -> None:
    scheduled = apply_default(RECIPES[0].example().func, CPU)
    assert apply_default(scheduled, CPU).same_as(scheduled)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (197, 3), (5, 1000), (33, 65)])
def test_ragged_shapes(shape: tuple[int, int]) -> None:
    """Shapes that no tile divides, rows or columns of one."""
    example = from_relax(
        lambda x, y: op.nn.softmax(op.add(x, y), axis=-1),
        [shape, shape[1:]],
        lambda x, y: np.exp(x + y) / np.exp(x + y).sum(-1, keepdims=True),
    )
    assert_right(apply_default(example.func, CPU), example)
