# SPDX-License-Identifier: Apache-2.0
"""Steps of recurrent layers on the CPU against float64."""

from __future__ import annotations

import json
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.library import cpu
from uir_tvm.library.attrs import OperandLayout
from uir_tvm.library.recurrence import GATES, RecurrenceAttrs, recurrence
from uir_tvm.library.work import work_of

Array = np.ndarray[Any, Any]
#: States lie within 1; errors of sums in float32 (hidden <= 130) and of the gates do not grow over the steps.
TOLERANCE = 2e-6


def operands(attributes: RecurrenceAttrs, seed: int = 0) -> list[Array]:
    """Inputs, weight, state, and the cell or bias; weights as small as layers start with."""
    make = np.random.default_rng(seed)
    wide, state = GATES[attributes.cell] * attributes.hidden, (attributes.batch, attributes.hidden)
    shapes = [(attributes.steps, attributes.batch, wide), (attributes.hidden, wide), state]
    shapes += {"lstm": [state], "gru": [(attributes.hidden,)]}.get(attributes.cell, [])
    found = [make.standard_normal(shape).astype(np.float32) for shape in shapes]
    found[1] /= np.float32(np.sqrt(attributes.hidden))
    return found


def call(attributes: RecurrenceAttrs, given: list[Array]) -> list[Array]:
    """The results of the registered function."""
    state = (attributes.batch, attributes.hidden)
    results = [np.full((attributes.steps, *state), 9, np.float32)]
    results += [np.full(state, 9, np.float32)] if attributes.cell == "lstm" else []
    tensors = [tvm.runtime.tensor(array) for array in (*given, *results)]
    count = len(given)
    tvm_ffi.get_global_func("uir.library.cpu.recurrence")(
        *tensors[:count], attributes.to_json(), *tensors[count:]
    )
    return [tensor.numpy() for tensor in tensors[count:]]


def attributes_of(cell: str, steps: int, batch: int, hidden: int, **more: Any) -> RecurrenceAttrs:
    """Attributes of a contiguous weight."""
    wide = GATES[cell] * hidden
    return RecurrenceAttrs(
        cell=cell, steps=steps, batch=batch, hidden=hidden, weight=OperandLayout((wide, 1)), **more
    )


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize(
    ("steps", "batch", "hidden", "reverse"),
    [(1, 1, 1, False), (3, 2, 16, True), (4, 3, 21, False), (2, 7, 37, True), (3, 5, 130, False)],
)
def test_against_float64(cell: str, steps: int, batch: int, hidden: int, reverse: bool) -> None:
    """Columns that fill no vector, rows that make no group, one thread and several; packed or as it lies."""
    attributes = attributes_of(cell, steps, batch, hidden, reverse=reverse)
    inputs, weight, *rest = operands(attributes)
    want = [array for array in recurrence(attributes, inputs, weight, *rest) if array is not None]
    turned = attrs.evolve(attributes, weight=OperandLayout((1, hidden)))
    packed = attrs.evolve(attributes, packed=True)
    for given, matrix in (
        (attributes, weight),
        (turned, np.ascontiguousarray(weight.T)),
        (packed, cpu.pack_recurrence(weight, attributes)),
    ):
        got = call(given, [inputs, matrix, *rest])
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("cell", GATES)
def test_every_height(cell: str) -> None:
    """Blocks of all heights, alone and beside one of the next height; more rows than are done at a time."""
    for batch in (*range(1, 15), 49, 97):
        attributes = attributes_of(cell, 3, batch, 69)
        given = operands(attributes, seed=batch)
        for one, other in zip(call(attributes, given), recurrence(attributes, *given), strict=False):
            np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE, err_msg=f"batch {batch}")


def test_functions_of_gates() -> None:
    """Sigmoid keeps its relative error where a gate shuts, and tanh near zero; the weight adds nothing."""
    x = np.concatenate([-np.geomspace(1e-30, 70, 600), np.geomspace(1e-30, 70, 600)]).astype(np.float32)
    hidden, wide = x.size, x.astype(np.float64)
    weight, state = np.zeros((hidden, 4 * hidden), np.float32), np.zeros((1, hidden), np.float32)
    attributes = attributes_of("lstm", 1, 1, hidden)
    shut, opened = np.full_like(x, -200), np.full_like(x, 200)

    def cell_of(gates: list[Array], cell: Array) -> tuple[Array, Array]:
        rows, made = call(attributes, [np.concatenate(gates)[None, None], weight, state, cell[None]])
        return rows[0, 0], made[0]

    one, none = np.ones_like(x), np.zeros_like(x)
    for got, want in (
        (cell_of([shut, x, none, one], one)[1], 1 / (1 + np.exp(-wide))),
        (cell_of([opened, shut, x, one], none)[1], np.tanh(wide)),
        (cell_of([shut, opened, none, opened], x)[0], np.tanh(wide)),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("cell", GATES)
def test_extreme_gates(cell: str) -> None:
    """Gates that are shut or wide open are exact, and what is not a number stays none, in its row alone."""
    attributes = attributes_of(cell, 2, 2, 18)
    inputs, weight, *rest = operands(attributes)
    inputs *= 1e4 if cell != "rnn_relu" else 1
    got = call(attributes, [inputs, weight, *rest])
    want = [array for array in recurrence(attributes, inputs, weight, *rest) if array is not None]
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=TOLERANCE)
    inputs[0, 1] = np.nan
    rows = call(attributes, [inputs, weight, *rest])[0]
    assert np.isnan(rows[:, 1]).all() and not np.isnan(rows[:, 0]).any()


def test_what_does_not_fit_is_refused() -> None:
    """An unknown cell, a missing operand, a weight of another size."""
    attributes = attributes_of("lstm", 2, 1, 4)
    given = operands(attributes)
    text = json.dumps(json.loads(attributes.to_json()) | {"cell": "cnn"})
    with pytest.raises(ValueError, match="cell is"):
        tvm_ffi.get_global_func("uir.library.cpu.recurrence_elements")(text)
    with pytest.raises(ValueError, match="arguments"):
        call(attributes, given[:3])
    with pytest.raises(ValueError, match="does not fit"):
        call(attributes, [given[0], given[1][:2], *given[2:]])
    with pytest.raises(ValueError, match="does not fit"):
        call(attrs.evolve(attributes, packed=True), given)


def test_attributes_and_work() -> None:
    """The text says all; the work is that of the products."""
    attributes = attributes_of("gru", 5, 2, 8, reverse=True)
    assert RecurrenceAttrs.from_json(attributes.to_json()) == attributes
    work = work_of("recurrence", attributes.to_json())
    assert (work.sizes, work.operations) == ("gru 5x2x8", 2 * 5 * 2 * 8 * 24)
    assert work.elements == 5 * 2 * 8 * 4 + 8 * 24
