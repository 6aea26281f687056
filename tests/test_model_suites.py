# SPDX-License-Identifier: Apache-2.0
"""The sweep of public architectures: a few of them, and what it makes of outcomes."""

from __future__ import annotations

import json
import os
import pathlib

import pytest
import torch

from tests.model_suites import SUITES, document, run
from tests.model_suites.case import ModelCase
from tests.model_suites.check import LIMIT, check, difference
from tests.model_suites.outcome import CRASHED, NOT_BUILT, REFUSED, RIGHT, TIMEOUT, WRONG, Outcome

RECORD = run.load(document.RECORD)


@pytest.mark.parametrize("name", ["distilbert", "mixtral", "whisper"])
def test_an_architecture_of_every_kind_is_right(name: str) -> None:
    """Text, experts that are chosen by data, and sound to text."""
    pytest.importorskip("transformers")
    outcome = check("transformers", name)
    assert outcome.state == RIGHT, outcome.reason
    assert 0 < outcome.error <= LIMIT and outcome.kernels and outcome.library
    assert all(row["reason"] for row in outcome.opaque)


def test_difference_sees_what_differs() -> None:
    x = torch.tensor([1.0, 2.0, -4.0])
    assert difference({"a": x}, {"a": x}) == (0.0, "")
    assert difference([x + torch.tensor([0, 0, 0.4])], [x])[0] == pytest.approx(0.1)
    for other in (
        x.double(),
        x[:2],
        torch.tensor([1.0, 2.0, torch.nan]),
        torch.tensor([1.0, 2.0, -torch.inf]),
    ):
        assert difference([other], [x])[0] == torch.inf
    inf = torch.tensor([1.0, torch.inf])
    assert difference([inf], [inf])[0] == 0 and difference([-inf], [inf])[0] == torch.inf
    assert difference([torch.tensor([1, 2])], [torch.tensor([1, 3])])[0] == torch.inf
    assert difference([x, x], [x])[0] == torch.inf and difference([3], [4])[0] == torch.inf


def _dies() -> None:
    os._exit(3)


def _hangs() -> None:
    import time

    time.sleep(600)


def _fails() -> None:
    raise ValueError("no such size")


@pytest.mark.parametrize(("build", "state"), [(_dies, CRASHED), (_hangs, TIMEOUT), (_fails, NOT_BUILT)])
def test_what_happens_to_a_process_is_a_row(
    build: object, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is a copy of this one, so that it has the case of this test."""
    case = ModelCase("transformers", "strange", "text encoder", build)
    monkeypatch.setitem(SUITES["transformers"], "strange", case)
    (outcome,) = run.sweep([("transformers", "strange")], limit=3, start="fork")
    assert (outcome.state, outcome.family) == (state, "text encoder")


def test_outcomes_are_kept(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "record.json"
    outcomes = {("transformers", "bert"): Outcome("transformers", "bert", "text encoder", RIGHT, seconds=2.0)}
    run.save(path, outcomes)
    assert run.load(path) == outcomes and run.load(tmp_path / "none.json") == {}
    assert json.loads(path.read_text())[0]["name"] == "bert"


def test_the_share_is_of_what_export_takes() -> None:
    states = [(RIGHT, ""), (RIGHT, ""), (REFUSED, "torch.export"), (REFUSED, "uir_tvm"), (WRONG, "")]
    counts = document.counted([Outcome("s", "n", "f", state, by) for state, by in states])
    assert (counts.right, counts.refused, counts.not_exported, counts.faults) == (2, 1, 1, 1)
    assert counts.share == 2 / 4


def test_the_document_is_what_the_record_gives() -> None:
    assert document.DOCUMENT.read_text() == document.text(list(RECORD.values()))


def test_the_record_holds_what_the_sweep_asks_for() -> None:
    """Nothing wrong, and at least 95 % of what torch.export takes, of a wide choice."""
    counts = document.counted(list(RECORD.values()))
    assert counts.faults == 0 and counts.share >= 0.95
    # a smaller error tells of a result that hangs on no input: a last bias alone, or zeros
    assert all(outcome.error > 1e-8 for outcome in RECORD.values() if outcome.state == RIGHT)
    assert sum(key[0] == "transformers" and o.state == RIGHT for key, o in RECORD.items()) >= 60
    assert {key for key in RECORD} <= {(suite, name) for suite, cases in SUITES.items() for name in cases}
