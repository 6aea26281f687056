# SPDX-License-Identifier: Apache-2.0
"""Verdicts survive the process, and the first one is remembered where a later one differs."""

from __future__ import annotations

import pathlib

from .results import Results


def test_a_second_run_goes_on_and_remembers_what_was_found_first(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "results.json"
    results = Results.load(file, seed=3)
    results.add("a", "")
    results.add("b", "t.py::b")
    again = Results.load(file, seed=3)
    assert again.now == {"a": "", "b": "t.py::b"}
    again.add("a", "t.py::new")
    assert (again.before("a"), again.now["a"]) == ("", "t.py::new")
    assert again.before("b") == "t.py::b"
    assert Results.load(file, seed=3) == again


def test_a_verdict_that_cannot_be_trusted_is_to_be_judged_again(tmp_path: pathlib.Path) -> None:
    results = Results.load(tmp_path / "results.json", seed=0)
    results.add("a", "t.py::flaky")
    results.forget("a")
    assert Results.load(results.file, seed=0).now == {}
