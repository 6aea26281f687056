# SPDX-License-Identifier: Apache-2.0
"""Where a unit's memory lacks room, a recipe's own sizes become smaller; no other recipe takes its kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel
from uir_tvm.pipeline import compile_kernel
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.smaller import SHRINK, TILE_BYTES, shrink_of, smaller_product, smaller_sides, with_tiles
from uir_tvm.schedule.tile_facts import space_of
from uir_tvm.schedules import RECIPES
from uir_tvm.target.registry import TARGETS

POWERS = st.sampled_from([1, 2, 4, 8])
SIDES = st.tuples(st.integers(1, 512), st.integers(1, 512))


def with_reg(hw: HardwareModel, part: int) -> HardwareModel:
    """The model with so many times less memory of a unit, and tiles as large as before."""
    sizes = (hw.reg_bytes // part, hw.sram_bytes, hw.vector_bytes)
    return HardwareModel(hw.name, hw.kind, hw.num_groups, hw.num_units, *sizes, dict(hw.figures))


@pytest.mark.parametrize(
    ("target", "recipe", "part"),
    [
        ("uir-ascend", RECIPES["contraction"], 16),
        ("uir-ascend", RECIPES["contraction"], 32),
        ("uir-bang", RECIPES["contraction"], 16),
        ("uir-bang", RECIPES["attention"], 16),
        ("uir-cuda", RECIPES["contraction"], 16),
        ("uir-cuda", RECIPES["column reduction"], 32),
    ],
    ids=lambda value: value.hero if isinstance(value, Recipe) else str(value),
)
def test_recipes_with_sizes_of_their_own_make_them_smaller(
    target: str, recipe: Any, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With less memory than its tiles take, a kernel keeps its recipe and is right."""
    from uir_tvm.schedule.hardware_of import model_of_target

    chosen = TARGETS[target].target(None, "model")
    small = with_reg(model_of_target(chosen), part)
    monkeypatch.setattr("uir_tvm.schedule.hardware_of.model_of_target", lambda _: small)
    example = recipe.example()
    record = compile_kernel(example.func.with_attr("target", chosen), chosen, "kernel")
    assert not record.fallback and record.recipe == recipe.hero
    assert record.candidate is not None and record.candidate.shrink > 1 and record.candidate.own_sizes
    (out,) = run_igraph(record.optimized, target, *example.inputs)
    want = example.expected[0]
    np.testing.assert_allclose(
        np.reshape(out, want.shape), want, rtol=0, atol=2e-5 * max(1, np.abs(want).max())
    )


def test_a_tile_is_smaller_by_as_much_as_asked() -> None:
    """Preferred tiles always, a recipe's own sizes where that is asked for; twice asked for is more."""
    hw = hardware.get("910b2", "ascend")
    preferred, all_of_them = with_tiles(hw, 4), with_tiles(with_tiles(hw, 2, True), 2, True)
    for model in (preferred, all_of_them):
        assert model.figures[TILE_BYTES] == hw.figures[TILE_BYTES] // 4
    assert SHRINK not in preferred.figures and shrink_of(preferred) == 1
    assert shrink_of(all_of_them) == 4
    assert space_of(preferred) is space_of(hw)
    for width, (rows, cols) in space_of(hw).transposed.items():
        small = space_of(all_of_them).transposed[width]
        assert 4 * small[0] * small[1] == rows * cols


@given(SIDES, POWERS)
def test_sides_take_so_many_times_less(sides: tuple[int, int], shrink: int) -> None:
    rows, cols = smaller_sides(sides, shrink)
    assert 1 <= rows <= sides[0] and 1 <= cols <= sides[1]
    assert rows * cols <= max(1, sides[0] * sides[1] // shrink)


@given(SIDES, st.integers(1, 256), POWERS)
def test_a_product_holds_so_many_times_less(tile: tuple[int, int], chunk: int, shrink: int) -> None:
    def held(rows: int, cols: int, depth: int) -> int:
        return 2 * rows * cols + (rows + cols) * depth

    small, depth = smaller_product(tile, chunk, shrink)
    assert min(*small, depth) >= 1
    assert held(*small, depth) <= max(held(1, 1, 1), held(*tile, chunk) // shrink)
    assert shrink > 1 or (small, depth) == (tile, chunk)
