# SPDX-License-Identifier: Apache-2.0
"""Functions that no recipe fits as a whole run in phases, on all units of every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm.relax import op
from uir_tvm.errors import ScheduleError
from uir_tvm.pipeline import KernelRecord, compile_kernel
from uir_tvm.schedule.hardware_of import model_of_target
from uir_tvm.schedules import elementwise, fallback
from uir_tvm.schedules.demo import Example, from_relax
from uir_tvm.schedules.phases import schedule_phases
from uir_tvm.target.registry import TARGETS

from tests.as_programs import run_igraph


def bound(target: str) -> tvm.target.Target:
    """A target of fixed hardware."""
    row = TARGETS[target]
    return row.target("avx512-2core") if target == "uir-cpu" else row.target(None, "model")


def checked(example: Example, target: str) -> KernelRecord:
    """The record of an example, whose emitted code computes what NumPy does."""
    chosen = bound(target)
    record = compile_kernel(example.func.with_attr("target", chosen), chosen, "kernel")
    assert not record.fallback
    for got, want in zip(
        run_igraph(record.optimized, target, *example.inputs), example.expected, strict=True
    ):
        limit = 2e-5 * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(np.reshape(got, want.shape), want, rtol=0, atol=limit)
    return record


def together(*results: Any) -> Any:
    """Several results of one function."""
    from tvm import relax

    return relax.Tuple(list(results))


def with_column_sums() -> Example:
    """What is elementwise is a result, and so is its sum over a middle dimension."""

    def build(x: Any) -> Any:
        y = op.multiply(x, x)
        return together(y, op.sum(y, axis=1))

    return from_relax(build, [(4, 96, 192)], lambda x: (x * x, (x * x).sum(1)))


def of_masks(shape: tuple[int, ...]) -> Example:
    """The same over rows that a dimension of one element ends."""

    def build(x: Any) -> Any:
        y = op.astype(x, "float32")
        return together(y, op.sum(y, axis=1))

    return from_relax(build, [shape], lambda x: (x, x.sum(1)), dtypes=["int64"], high=3)


def chain(rows: int, cols: int) -> Example:
    """The largest mean of rows."""
    return from_relax(
        lambda x: op.max(op.mean(x, axis=-1), axis=0), [(rows, cols)], lambda x: x.mean(-1).max(0)
    )


@pytest.mark.parametrize("target", TARGETS)
def test_reductions_over_different_rows(target: str) -> None:
    """All rows in the first phase, on all units; their results in the second, behind a barrier."""
    record = checked(chain(600, 80), target)
    assert record.recipe == "phases" and record.igraph is not None
    assert record.igraph.num_parallel > 1 and record.num_phases == 2


@pytest.mark.parametrize("target", TARGETS)
def test_an_elementwise_result_beside_a_reduction_of_it(target: str) -> None:
    record = checked(with_column_sums(), target)
    assert record.recipe == "phases" and record.igraph is not None and record.igraph.num_parallel > 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(2, 16, 1), (64, 300, 1), (6, 40)])
def test_an_elementwise_result_beside_the_sum_of_its_rows(target: str, shape: tuple[int, ...]) -> None:
    """One pass: the tile that is reduced is stored too, whatever dimensions of one element there are."""
    record = checked(of_masks(shape), target)
    assert record.recipe == "normalization" and record.num_phases == 1


def test_what_no_recipe_fits_alone_is_refused() -> None:
    """A scan in one of the statements: the function is left to the fallback, which always builds."""
    hw = model_of_target(bound("uir-cpu"))
    with pytest.raises(ScheduleError, match="No recipe fits block"):
        schedule_phases(tvm.s_tir.Schedule(fallback.example().func), hw, [elementwise.RECIPE])


def test_one_statement_has_no_phases() -> None:
    example = from_relax(lambda x: op.exp(x), [(8, 8)], np.exp)
    with pytest.raises(ScheduleError, match="not cut into phases"):
        schedule_phases(
            tvm.s_tir.Schedule(example.func), model_of_target(bound("uir-cpu")), [elementwise.RECIPE]
        )
