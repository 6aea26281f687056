# SPDX-License-Identifier: Apache-2.0
"""Planted faults of our own code: each is one change that parses, and a seed draws the same
whatever else of the code changes."""

from __future__ import annotations

import ast
import pathlib

import pytest

from .mutants import KINDS, mutants, sample

ROOT = pathlib.Path(__file__).resolve().parents[2]

SOURCE = '''"""Text with ä, and 1 < 2."""
def f(a: int = 3, b: "list[int]" = ()) -> int:
    "doc"
    assert a < 5, "message"
    if a < 1 and not b:
        raise ValueError(f"{a + 1} ä")
    return max(a - 2, 0) if "ä" in b else a
'''


def test_every_fault_is_one_change_of_code_that_runs(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(SOURCE)
    found = [(m.kind, m.before, m.after) for m in mutants(file, tmp_path)]
    assert set(found) == {
        ("condition left out", "a < 1 and not b", "(not b)"),
        ("condition left out", "a < 1 and not b", "(a < 1)"),
        ("comparison", "a < 1", "(a <= 1)"),
        ("off by one", "1", "(2)"),
        ("negation left out", "not b", "(b)"),
        ("sides exchanged", 'max(a - 2, 0) if "ä" in b else a', "(a if 'ä' in b else max(a - 2, 0))"),
        ("quantifier", "max(a - 2, 0)", "(min(a - 2, 0))"),
        ("operator", "a - 2", "(a + 2)"),
        ("off by one", "2", "(3)"),
        ("off by one", "0", "(1)"),
        ("comparison", '"ä" in b', "('ä' not in b)"),
    }
    for mutant in mutants(file, tmp_path):
        assert ast.dump(ast.parse(mutant.planted(SOURCE))) != ast.dump(ast.parse(SOURCE))


@pytest.mark.parametrize("folder", ["igraph", "verify"])
def test_faults_of_the_package_parse_and_a_seed_draws_the_same(folder: str) -> None:
    found = sample(ROOT, [folder], 60, seed=3)
    assert found == sample(ROOT, [folder], 60, seed=3) != sample(ROOT, [folder], 60, seed=4)
    assert {m.kind for m in found} == set(KINDS)
    for mutant in found:
        ast.parse(mutant.planted((ROOT / mutant.path).read_text()))


def test_what_is_drawn_and_its_names_stay_when_other_code_changes(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "python/uir_tvm"
    for folder in ("a", "b"):
        (package / folder).mkdir(parents=True)
        (package / folder / "f.py").write_text(SOURCE)
    drawn = [m.name for m in sample(tmp_path, ["a", "b"], 12, seed=3)]
    assert len(drawn) == len(set(drawn)) == 12
    # lines move, and one folder has a file more
    (package / "a/f.py").write_text("# a line more" + "\n" * 30 + SOURCE)
    (package / "b/g.py").write_text(SOURCE)
    after = [m.name for m in sample(tmp_path, ["a", "b"], 12, seed=3)]
    assert [n for n in after if "/a/" in n] == [n for n in drawn if "/a/" in n]


def test_faults_that_read_the_same_have_names_of_their_own(tmp_path: pathlib.Path) -> None:
    (tmp_path / "f.py").write_text("def f(a):\n    return a < 1 or f(\n        a < 1\n    )\n")
    compared = [m.name for m in mutants(tmp_path / "f.py", tmp_path) if m.kind == "comparison"]
    name = "f.py: comparison: a < 1 -> (a <= 1)"
    assert compared == [name, f"{name} (number 2)"]
