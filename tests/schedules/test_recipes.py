# SPDX-License-Identifier: Apache-2.0
"""Recipes: the right one is chosen, and TVM's own lowering of what it makes computes what NumPy says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.schedule import apply_default, is_scheduled
from uir_tvm.schedules import RECIPES
from uir_tvm.schedules.demo import TOLERANCE, Example, from_relax

from tests.extracted import extracted
from tests.stock import stock

CPU = hardware.get("avx512-2core")


def run_stock(func: Any, example: Example) -> list[np.ndarray]:
    """TVM's own lowering of a (scheduled) function on the example's inputs."""
    params = func.params[len(example.inputs) :]
    outputs = [tvm.runtime.empty([int(d) for d in p.shape], str(p.dtype)) for p in params]
    given = [*map(tvm.runtime.tensor, example.inputs), *outputs]
    stock(func)["main"](*given)
    return [each.numpy() for each in given[-len(example.expected) :]]


def assert_right(func: Any, example: Example) -> None:
    for got, want in zip(run_stock(func, example), example.expected, strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        assert np.abs(got.astype("float64") - want).max(initial=0) <= TOLERANCE * scale


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda r: r.hero)
def test_example_gets_its_recipe_and_is_right(recipe: Any) -> None:
    example = recipe.example()
    scheduled = apply_default(example.func, CPU)
    assert scheduled.attrs["uir.recipe"] == recipe.hero
    assert is_scheduled(scheduled) or recipe.hero == "fallback"
    assert_right(scheduled, example)


def test_rows_longer_than_a_units_memory_are_walked_in_chunks() -> None:
    """Log-softmax over rows that exceed reg: no tile is wider than the chunk, the numbers stay right."""
    columns = CPU.reg_bytes // 4 + 1024

    def reference(x: Any) -> Any:
        shifted = x - x.max(-1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))

    example = from_relax(lambda x: op.nn.log_softmax(x, axis=-1), [(3, columns)], reference)
    scheduled = apply_default(example.func, CPU)
    assert scheduled.attrs["uir.recipe"] == "normalization"
    # Online: the maximum and the sum share one loop over chunks, so the row is read twice, not three times.
    assert reads_of_rows(scheduled, columns) == 2
    assert_right(scheduled, example)


def test_long_rows_without_a_near_divisor_are_walked_three_times() -> None:
    columns = 262153  # a prime: no chunk divides it
    example = from_relax(lambda x: op.nn.softmax(x, axis=-1), [(2, columns)], lambda x: softmax(x, -1))
    scheduled = apply_default(example.func, CPU)
    assert scheduled.attrs["uir.recipe"] == "normalization"
    assert_right(scheduled, example)


def reads_of_rows(func: Any, columns: int) -> int:
    """How often the iGraph of a function of one operand loads its rows from dram."""
    graph = extracted(func, CPU)
    return sum(
        math.prod([int(lp.extent) for lp in loops[1:]]) * int(iop.sources[0].cols) // columns
        for iop, loops in graph.walk()
        if iop.op == "move" and iop.sources[0].pointer.role == "in"
    )


@pytest.mark.parametrize(
    ("batch", "heads", "length", "along"),
    [
        (4, 12, 37, True),  # 9 KiB instead of 3
        (2, 12, 37, False),  # half of the cores would have nothing, or one row at a time
        (4, 12, 10, False),  # shorter than the result's
        (4, 64, 100, False),  # those of the result are a transfer
    ],
)
def test_tiles_of_moved_rows_go_along_the_operand_where_that_makes_wider_transfers(
    batch: int, heads: int, length: int, along: bool
) -> None:
    """(batch, heads, length, 64) with the heads last, for 48 cores that want transfers of 16 KiB."""
    example = from_relax(
        lambda x: op.permute_dims(x, [0, 2, 1, 3]),
        [(batch, heads, length, 64)],
        lambda x: x.transpose(0, 2, 1, 3),
    )
    npu = hardware.get("910b2", "ascend")
    scheduled = apply_default(example.func, npu)
    (tile,) = [
        iop.target for iop, _ in extracted(scheduled, npu).walk() if iop.sources[0].pointer.role == "in"
    ]
    rows = int(tile.rows) * int(tile.cols) // 64
    assert rows == length if along else heads % rows == 0
    assert_right(scheduled, example)


def test_a_scheduled_function_is_left_alone() -> None:
    scheduled = apply_default(RECIPES["attention"].example().func, CPU)
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


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def group_norm(x: Any) -> Any:
    groups = x.reshape(2, 4, 2, 6, 5)
    mean = groups.mean((2, 3, 4), keepdims=True)
    var = groups.var((2, 3, 4), keepdims=True)
    return ((groups - mean) / np.sqrt(var + 1e-5)).reshape(x.shape)


RECIPE_OF: dict[str, tuple[str, Any, list[tuple[int, ...]], Any]] = {
    "softmax over channels": (
        "column reduction",
        lambda x: op.nn.softmax(x, axis=1),
        [(3, 21, 70)],
        lambda x: softmax(x, 1),
    ),
    "group norm": (
        "normalization",
        lambda x: op.nn.group_norm(
            x, op.ones((8,), "float32"), op.zeros((8,), "float32"), num_groups=4, channel_axis=1, axes=[2, 3]
        ),
        [(2, 8, 6, 5)],
        group_norm,
    ),
    "mean of everything": ("reduction", lambda x: op.mean(x), [(33, 77)], lambda x: x.mean()),
    "variance": ("reduction", lambda x: op.variance(x, axis=[-1]), [(33, 77)], lambda x: x.var(-1)),
    "sum over the middle": (
        "column reduction",
        lambda x: op.sum(x, axis=[0, 2]),
        [(5, 6, 7, 64)],
        lambda x: x.sum((0, 2)),
    ),
    "batched product": (
        "contraction",
        lambda a, b: op.matmul(a, b),
        [(3, 20, 30), (3, 30, 40)],
        lambda a, b: a @ b,
    ),
    "column of a product": (
        "contraction",
        lambda a, b: op.matmul(a, b),
        [(9, 70), (70, 1)],
        lambda a, b: a @ b,
    ),
}


@pytest.mark.parametrize("name", RECIPE_OF)
def test_recipe_of(name: str) -> None:
    hero, build, shapes, reference = RECIPE_OF[name]
    example = from_relax(build, shapes, reference)
    scheduled = apply_default(example.func, CPU)
    assert scheduled.attrs["uir.recipe"] == hero
    assert_right(scheduled, example)
