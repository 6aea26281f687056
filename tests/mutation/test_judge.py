# SPDX-License-Identifier: Apache-2.0
"""A fault is planted in a copy, and found where a test of its lines fails there."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from importlib import metadata

import coverage
import pytest

from . import chosen, nest
from .judge import ENDLESS, Copy, Judge, _distance
from .mutants import Mutant, mutants
from .reach import LINES_FILE, SECONDS_FILE, Reach

CODE = "python/uir_tvm/own/code.py"
TESTS = "tests/own/test_code.py"
SOURCE = """NAMES = ["a", "b"][:2]


def large(x):
    if x > 3:
        return True
    return False
"""
MODULE = "tests/mutation/mutants.py"
TEST_SOURCE = """import pathlib, runpy, pytest
code = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "python/uir_tvm/own/code.py"))

@pytest.mark.parametrize("name", code["NAMES"][1:])
def test_names(name):
    assert name

def test_far():
    assert code["large"](10) and not code["large"](0)

def test_near():
    assert not code["large"](3)

def test_broken():
    assert False

def test_endless():
    while True:
        pass
"""


@pytest.fixture
def project(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A repository of one module and its tests; nothing was compiled for it."""
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "none"))
    # what tests of so plain a module do not need, and what would take most of their time
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    root = tmp_path / "project"
    plugin = pathlib.Path(chosen.__file__).read_text()
    files = {CODE: SOURCE, TESTS: TEST_SOURCE, ".git/HEAD": "", "pyproject.toml": ""}
    for name, text in {**files, MODULE: "", "tests/mutation/chosen.py": plugin}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def map_of(project: pathlib.Path, tests: dict[str, list[int]]) -> None:
    folder = project / "mutants-map"
    folder.mkdir()
    data = coverage.CoverageData(str(folder / LINES_FILE))
    for test, lines in tests.items():
        data.set_context(f"{TESTS}::{test}|run")
        data.add_lines({str(project / CODE): lines})
    data.write()
    (folder / SECONDS_FILE).write_text(json.dumps({f"{TESTS}::{test}": 0.1 for test in tests}))


def fault(project: pathlib.Path, before: str, after: str) -> Mutant:
    (found,) = (m for m in mutants(project / CODE, project) if (m.before, m.after) == (before, after))
    return found


@pytest.fixture
def copy(project: pathlib.Path, tmp_path: pathlib.Path) -> Iterator[Copy]:
    map_of(project, {"test_far": [5]})
    with Copy(project, tmp_path / "copy", imported=()) as made:
        yield made


def test_the_test_of_a_boundary_finds_a_fault_at_it(project: pathlib.Path, copy: Copy) -> None:
    at_three = fault(project, "x > 3", "(x >= 3)")
    far = Judge(Reach(project / "mutants-map", project), 60.0)
    assert far.verdict(at_three, copy) == ""
    # a test that is newer than the map comes first
    newer = Judge(far.reach, 60.0, (f"{TESTS}::test_near",))
    assert newer.verdict(at_three, copy) == f"{TESTS}::test_near"
    assert (copy.folder / CODE).read_text() == (project / CODE).read_text() == SOURCE


def test_of_new_tests_those_that_mirror_the_faulty_file_come_first() -> None:
    tests = ["tests/tune/test_a.py", "tests/own/test_b.py", "tests/own/deep/test_c.py", "tests/test_code.py"]
    code = "python/uir_tvm/own/deep/code.py"
    wanted = [tests[3], tests[2], tests[1], tests[0]]
    assert sorted(tests, key=lambda test: _distance(test, code)) == wanted


def test_a_copy_has_no_history_and_no_map_but_every_module(copy: Copy) -> None:
    assert (copy.folder / TESTS).exists()
    assert not (copy.folder / ".git").exists() and not (copy.folder / "mutants-map").exists()
    # a module may begin as maps do: `tests/mutation/mutants.py`
    assert (copy.folder / MODULE).exists()


def test_a_case_that_a_fault_renames_has_not_found_it(copy: Copy) -> None:
    assert copy.first_failure([f"{TESTS}::test_names[c]"], 60.0) == ""
    assert copy.first_failure(["tests/own/test_moved.py::test_it"], 60.0) == ""
    # nor does it hide what others find, and cases that are not listed do not run
    listed = [f"{TESTS}::test_names[c]", f"{TESTS}::test_far", f"{TESTS}::test_names[b]"]
    (copy.folder / CODE).write_text(SOURCE.replace("x > 3", "x < 3"))
    assert copy.first_failure(listed, 60.0) == f"{TESTS}::test_far"


def test_code_that_does_not_import_and_loops_without_end_are_found(copy: Copy) -> None:
    assert copy.first_failure([f"{TESTS}::test_endless"], 3.0) == ENDLESS
    (copy.folder / CODE).write_text("1 / 0")
    assert copy.first_failure([f"{TESTS}::test_far"], 60.0) == TESTS


def test_a_finder_that_fails_without_a_fault_is_not_believed(copy: Copy) -> None:
    verdicts = {"one": f"{TESTS}::test_broken", "two": f"{TESTS}::test_far", "three": ENDLESS, "four": ""}
    assert copy.unsound(verdicts) == {"one": f"{TESTS}::test_broken"}
    # nor is a file that cannot be collected: one that can found the fault
    lost = "tests/own/test_lost.py"
    (copy.folder / lost).write_text("import nothing_of_this_name")
    assert copy.unsound({"one": lost, "two": TESTS}) == {"one": lost}


def test_tvm_imports_its_own_backends_and_not_the_package() -> None:
    """Without its own no test of a sort runs; with the package no fault of it would be imported."""
    assert "uir" in metadata.entry_points(group=nest.BACKENDS).names
    assert not list(nest._not_ours(group=nest.BACKENDS))
    assert list(nest._not_ours(group="pytest11")) == list(metadata.entry_points(group="pytest11")) != []
