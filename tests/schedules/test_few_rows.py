# SPDX-License-Identifier: Apache-2.0
"""Few long rows, and few columns, on a processor of two cores: what each does, and that results are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm.relax import op
from uir_tvm.pipeline import KernelRecord
from uir_tvm.schedules.demo import Example, from_relax

from .test_phases import checked


def roots_of_sums(shape: tuple[int, ...], axis: int) -> Example:
    """The square roots of sums of squares along an axis."""
    return from_relax(
        lambda x: op.sqrt(op.sum(op.multiply(x, x), axis=axis)), [shape], lambda x: np.sqrt((x * x).sum(axis))
    )


def softmax(shape: tuple[int, ...], axis: int) -> Example:
    """Softmax along an axis."""

    def reference(x: Any) -> Any:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return from_relax(lambda x: op.nn.softmax(x, axis=axis), [shape], reference)


def stored_columns(record: KernelRecord) -> set[int]:
    """Columns of the slices that are stored as results."""
    assert record.igraph is not None
    stores = (iop.target for iop, _ in record.igraph.walk() if iop.op == "move")
    return {int(piece.cols) for piece in stores if piece.pointer.role == "out"}


@pytest.mark.parametrize(
    ("shape", "phases"),
    [
        ((1, 1 << 17), 2),
        ((1, 3 << 16), 2),
        ((1, 400, 500), 2),
        ((1, 7 * 20_011), 2),  # seven parts
        ((1, 1 << 16), 1),  # less than two parts
        ((1, (1 << 17) + 1), 1),  # three parts: one core would take two of them
        ((2, 1 << 17), 1),  # a row for each core
    ],
)
def test_parts_of_few_long_rows(shape: tuple[int, ...], phases: int) -> None:
    """Both cores add up parts of them, and then one of them the parts."""
    example = roots_of_sums((shape[0], int(np.prod(shape[1:]))), 1) if len(shape) < 3 else _flat(shape)
    record = checked(example, "uir-cpu")
    assert record.num_phases == phases and record.recipe == "reduction"
    assert record.igraph is not None and record.igraph.num_parallel == min(2, phases * shape[0])


def _flat(shape: tuple[int, ...]) -> Example:
    """Sums over two dimensions."""
    return from_relax(lambda x: op.sum(x, axis=[1, 2]), [shape], lambda x: x.sum((1, 2)))


def test_columns_are_dealt_evenly() -> None:
    """Of 768 columns each core takes half, where tiles of 256 would leave one of them twice as many."""
    assert stored_columns(checked(roots_of_sums((512, 768), 0), "uir-cpu")) == {384}


@pytest.mark.parametrize("rows", [60, 300, 2000])
def test_tall_tiles_keep_a_line(rows: int) -> None:
    """A column of all rows is no vector: a softmax along them takes 16 side by side."""
    (columns,) = stored_columns(checked(softmax((2, rows, 64), 1), "uir-cpu"))
    assert columns == 16


def test_exponentials_of_a_long_row_are_computed_once() -> None:
    """They fit in the second cache beside the row; a row of which they do not is walked in chunks, twice."""

    def exponentials(cols: int) -> int:
        record = checked(softmax((1, cols), 1), "uir-cpu")
        assert record.igraph is not None
        walked = (iop for iop, _ in record.igraph.walk() if iop.op == "unary" and iop.name == "exp")
        return sum(1 for iop in walked if max(iop.target.rows, iop.target.cols) > 1000)

    assert exponentials(50257) == 1
    assert exponentials(200_000) == 2
