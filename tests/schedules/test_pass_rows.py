# SPDX-License-Identifier: Apache-2.0
"""Rows of exponentials share a tile where the first cache holds them, and a processor gains by that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.demo import Example, from_relax
from uir_tvm.target.cpu.presets import PRESETS
from uir_tvm.verify import verify

from tests.as_programs import run_igraph
from tests.extracted import extracted

PLAIN = hardware.get("avx512-2core")


def model(**figures: int) -> HardwareModel:
    """A CPU of vectors of 64 bytes, with passes over rows of up to 1024 columns."""
    known = dict(PLAIN.figures.items()) | {"pass_columns": 1024, "l3_bytes": 1 << 25} | figures
    return HardwareModel("passes", "cpu", 2, 1, PLAIN.reg_bytes, 0, PLAIN.vector_bytes, known)


def softmax(*shape: int) -> Example:
    """Along the last axis."""
    return from_relax(lambda x: op.nn.softmax(x, axis=-1), [shape], _softmax)


def masked(*shape: int) -> Example:
    """The same of a sum of two operands."""

    def made(x: Any, m: Any) -> Any:
        return op.nn.softmax(op.add(x, m), axis=-1)

    return from_relax(made, [shape, shape], lambda x, m: _softmax(x + m))


def one_pass(*shape: int) -> Example:
    """Sums of exponentials."""
    return from_relax(lambda x: op.sum(op.exp(x), axis=-1), [shape], lambda x: np.exp(x).sum(-1))


def squares(*shape: int) -> Example:
    """Rows over the root of their squares: no exponentials."""

    def made(x: Any) -> Any:
        return op.divide(x, op.sum(op.multiply(x, x), axis=-1, keepdims=True))

    return from_relax(made, [shape], lambda x: x / (x * x).sum(-1, keepdims=True))


def _softmax(x: np.ndarray) -> np.ndarray:
    wide = np.exp(x - x.max(-1, keepdims=True))
    return wide / wide.sum(-1, keepdims=True)


def graph_of(example: Example, hw: HardwareModel) -> IGraph:
    """The iGraph of the default schedule."""
    return extracted(apply_default(example.func, hw), hw)


def rows_of_tile(graph: IGraph) -> int:
    """Rows that a tile of the operand has."""
    return max(int(iop.target.rows) for node in graph.body for iop in node.body)


@pytest.mark.parametrize(
    ("example", "hw", "rows"),
    [
        (softmax(64, 1024), model(), 2),
        (softmax(64, 512), model(), 4),
        (softmax(64, 1024), PLAIN, 1),
        (softmax(64, 1025), model(), 1),
        (softmax(64, 1024), model(l3_bytes=64 * 4096 - 1), 1),  # comes from memory
        (masked(64, 1024), model(), 1),
        (squares(64, 1024), model(), 1),
        (one_pass(64, 1024), model(), 1),
    ],
    ids=[
        "two",
        "four",
        "another processor",
        "longer",
        "memory",
        "two operands",
        "no exponentials",
        "one pass",
    ],
)
def test_rows_of_a_tile(example: Example, hw: HardwareModel, rows: int) -> None:
    graph = graph_of(example, hw)
    verify(graph)
    assert rows_of_tile(graph) == rows


def test_short_rows_keep_their_tiles() -> None:
    """They have passes anyway."""
    example = softmax(640, 256)
    assert rows_of_tile(graph_of(example, model())) == rows_of_tile(graph_of(example, PLAIN))


@pytest.mark.parametrize("shape", [(64, 1024), (10, 600)])
def test_results(shape: tuple[int, int]) -> None:
    """With NaN in a row, infinities in others."""
    example = softmax(*shape)
    (x,) = example.inputs
    x[1, 3], x[2, 5], x[3] = np.nan, -np.inf, -np.inf
    found = run_igraph(graph_of(example, model()), "uir-cpu", x)[0].reshape(shape)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found, _softmax(x.astype(np.float64)), rtol=1e-5, atol=1e-6)


def test_whose_processors_these_are() -> None:
    assert "pass_columns" not in PLAIN.figures
    assert PRESETS["znver4"]().figures["pass_columns"] == 1024
    assert "pass_columns" not in PRESETS["znver4,-avx512f"]().figures
