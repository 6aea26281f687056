# SPDX-License-Identifier: Apache-2.0
"""docs/torch-operators.md is made of the record, and the record knows every call of the sweep."""

from __future__ import annotations

from tests.frontend.torch_sweep import tables
from tests.frontend.torch_sweep.document import DOCUMENT, function_and_inputs, load, rendered
from tests.frontend.torch_sweep.run import OUTSIDE, REFUSED, RIGHT


def test_the_record_has_every_call_and_nothing_else() -> None:
    """After a change of the tables: scripts/sweep_torch.py --document --filter ..."""
    record = load()
    known = {(function, inputs) for function, rows in record.items() for inputs in rows}
    assert known == {function_and_inputs(call) for call in tables.table()}


def test_no_call_of_the_record_is_wrong() -> None:
    states = {state for rows in load().values() for state, _ in rows.values()}
    assert states == {RIGHT, REFUSED, OUTSIDE}


def test_the_document_is_that_of_the_record() -> None:
    assert DOCUMENT.read_text() == rendered(load())
