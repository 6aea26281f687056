# SPDX-License-Identifier: Apache-2.0
"""The tests of a line are those that ran it, files in turns, the quickest first, within the budget."""

from __future__ import annotations

import json
import os
import pathlib

import coverage
import pytest

from .reach import LINES_FILE, SECONDS_FILE, Reach


@pytest.fixture
def reach(tmp_path: pathlib.Path) -> Reach:
    """Line 1 runs at import, line 2 in three tests, line 3 in a fixture and in a test that failed."""
    file = str(tmp_path / "pkg" / "a.py")
    data = coverage.CoverageData(str(tmp_path / LINES_FILE))
    for context, lines in {
        "": [1],
        "t.py::slow|run": [2],
        "t.py::quick|run": [2],
        "u.py::other|run": [2],
        "t.py::slow|setup": [3],
        "t.py::failed|run": [3],
    }.items():
        data.set_context(context)
        data.add_lines({file: lines})
    data.write()
    seconds = {"t.py::slow": 50.0, "t.py::quick": 1.0, "u.py::other": 60.0}
    (tmp_path / SECONDS_FILE).write_text(json.dumps(seconds))
    return Reach(tmp_path, tmp_path)


def test_tests_of_a_line_the_quickest_first_and_files_in_turns(reach: Reach) -> None:
    # the second test of t.py, 50 s, waits for the first of u.py, 60 s
    assert reach.choose("pkg/a.py", [2], [], 200.0).tests == ("t.py::quick", "u.py::other", "t.py::slow")


def test_a_test_that_failed_when_the_map_was_made_finds_nothing(reach: Reach) -> None:
    assert reach.choose("pkg/a.py", [3, 4], [], 60.0).tests == ("t.py::slow",)


def test_a_budget_leaves_the_slow_ones_out_and_says_how_many_there_were(reach: Reach) -> None:
    chosen = reach.choose("pkg/a.py", [2], [], 10.0)
    assert (chosen.tests, chosen.seconds, chosen.reached) == (("t.py::quick",), 1.0, 3)
    # the only one there is runs, whatever it takes
    assert reach.choose("pkg/a.py", [3], [], 10.0).tests == ("t.py::slow",)


def test_a_line_within_a_statement_counts_as_its_statement(reach: Reach) -> None:
    assert reach.choose("pkg/a.py", [4], [3, 4], 60.0).tests == ("t.py::slow",)
    assert reach.choose("pkg/a.py", [4], [4], 60.0).tests == ()


def test_what_runs_at_import_is_left_to_the_tests_of_its_file(reach: Reach) -> None:
    assert reach.choose("pkg/a.py", [1], [], 200.0).tests == ("t.py::quick", "u.py::other", "t.py::slow")
    assert reach.choose("pkg/other.py", [1], [], 60.0).tests == ()


def test_of_a_file_that_was_changed_since_all_lines_count(reach: Reach, tmp_path: pathlib.Path) -> None:
    """Line 2 may be what was line 3."""
    (tmp_path / "pkg").mkdir()
    source, made = tmp_path / "pkg" / "a.py", (tmp_path / SECONDS_FILE).stat().st_mtime
    source.write_text("")
    os.utime(source, (made - 1, made - 1))
    assert reach.choose("pkg/a.py", [3], [], 200.0).tests == ("t.py::slow",)
    os.utime(source, (made + 1, made + 1))
    assert reach.choose("pkg/a.py", [3], [], 200.0).tests == ("t.py::quick", "u.py::other", "t.py::slow")
