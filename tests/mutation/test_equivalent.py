# SPDX-License-Identifier: Apache-2.0
"""The list of faults that change nothing speaks of code that exists, and has a reason for each."""

from __future__ import annotations

import pathlib

import pytest

from .equivalent import Equivalent, listed, reasons
from .mutants import mutants

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("entry", listed(), ids=lambda entry: f"{entry.path}: {entry.text[:40]}")
def test_an_entry_is_of_a_fault_of_the_code(entry: Equivalent) -> None:
    of_file = mutants(ROOT / entry.path, ROOT)
    assert entry.why.endswith(".")
    assert entry.why in reasons(ROOT, of_file, [entry]).values()


def test_another_line_or_another_fault_is_not_the_listed_one(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    return x > 1\ndef g(x):\n    return not x > 1\n")
    entry = Equivalent("a.py", "return x > 1", "x > 1", "(x >= 1)", "It is said here.")
    why = reasons(tmp_path, mutants(tmp_path / "a.py", tmp_path), [entry])
    assert [(mutant.line, mutant.after) for mutant in why] == [(2, "(x >= 1)")]
