# SPDX-License-Identifier: Apache-2.0
"""The tests of a line are those that ran it, the quickest first, within the budget."""

from __future__ import annotations

import json
import pathlib

import coverage
import pytest

from .reach import LINES_FILE, SECONDS_FILE, Reach


@pytest.fixture
def reach(tmp_path: pathlib.Path) -> Reach:
    """A map of one file: line 1 runs at import, line 2 in two tests, line 3 in a fixture of the slow one."""
    file = str(tmp_path / "pkg" / "a.py")
    data = coverage.CoverageData(str(tmp_path / LINES_FILE))
    for context, lines in {
        "": [1],
        "t.py::slow|run": [2],
        "t.py::quick|run": [2],
        "t.py::slow|setup": [3],
    }.items():
        data.set_context(context)
        data.add_lines({file: lines})
    data.write()
    (tmp_path / SECONDS_FILE).write_text(json.dumps({"t.py::slow": 50.0, "t.py::quick": 1.0}))
    return Reach(tmp_path, tmp_path)


def test_tests_of_a_line_the_quickest_first(reach: Reach) -> None:
    assert reach.choose("pkg/a.py", [2], 60.0).tests == ("t.py::quick", "t.py::slow")
    assert reach.choose("pkg/a.py", [3, 4], 60.0).tests == ("t.py::slow",)


def test_a_budget_leaves_the_slow_ones_out_and_says_how_many_there_were(reach: Reach) -> None:
    chosen = reach.choose("pkg/a.py", [2], 10.0)
    assert (chosen.tests, chosen.reached) == (("t.py::quick",), 2)
    # the only one there is runs, whatever it takes
    assert reach.choose("pkg/a.py", [3], 10.0).tests == ("t.py::slow",)


def test_what_runs_at_import_has_no_tests(reach: Reach) -> None:
    assert reach.choose("pkg/a.py", [1], 60.0).tests == ()
    assert reach.choose("pkg/other.py", [1], 60.0).tests == ()
