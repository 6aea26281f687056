# SPDX-License-Identifier: Apache-2.0
"""Which tests run a line of the package, and how long each takes: a map that one run of the suite makes.

As a pytest plugin (``-p tests.mutation.reach``) it writes the seconds of every test; which lines each runs is
pytest-cov's to record (``--cov-context=test``).
"""

from __future__ import annotations

import json
import os
import pathlib
from collections import Counter
from collections.abc import Iterable, Mapping

import attrs
import coverage
import pytest

#: The environment's word for the file of seconds.
SECONDS = "UIR_TEST_SECONDS"
#: Files of a map.
LINES_FILE, SECONDS_FILE = "lines.coverage", "seconds.json"

_seconds: Counter[str] = Counter()
_failed: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the seconds of a test, with those of its fixtures."""
    _seconds[report.nodeid] += report.duration
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was counted, once: workers tell their tests to the process that started them."""
    file = os.environ.get(SECONDS)
    if file and not hasattr(session.config, "workerinput"):
        # a test that fails without a fault cannot find one
        passed = {test: seconds for test, seconds in _seconds.items() if test not in _failed}
        pathlib.Path(file).write_text(json.dumps(passed))


@attrs.frozen
class Chosen:
    """Tests that run some lines.

    Parameters
    ----------
    tests : tuple of str
        Those that the budget allows, in the order in which to run them.
    seconds : float
        That these took.
    reached : int
        How many there are in all.
    """

    tests: tuple[str, ...]
    seconds: float
    reached: int


class Reach:
    """The map of a run of the suite.

    Parameters
    ----------
    folder : pathlib.Path
        Where `LINES_FILE` and `SECONDS_FILE` are.
    root : pathlib.Path
        Of the repository whose lines were recorded.

    Raises
    ------
    FileNotFoundError
        The folder has no map.
    """

    def __init__(self, folder: pathlib.Path, root: pathlib.Path) -> None:
        self._seconds: dict[str, float] = json.loads((folder / SECONDS_FILE).read_text())
        self._data = coverage.CoverageData(str(folder / LINES_FILE))
        self._data.read()
        self._root = root
        self._made = (folder / SECONDS_FILE).stat().st_mtime

    def choose(self, path: str, lines: Iterable[int], around: Iterable[int], budget: float) -> Chosen:
        """The tests that run one of the lines, within a budget of seconds.

        Where none of the lines was recorded, those around them count; where they ran at import alone, or the
        file was changed since, every test that runs a line of the file.  Quick tests come first, and files of
        tests take turns: the tenth test of one file says little that the nine before it did not.
        """
        by_line = self._data.contexts_by_lineno(str(self._root / path))
        ran = _contexts(by_line, lines) or _contexts(by_line, around)
        source = self._root / path
        if source.exists() and source.stat().st_mtime > self._made:
            # its lines may have other numbers now
            ran = _contexts(by_line, by_line)
        tests = self._tests(ran)
        if ran and not tests:
            tests = self._tests(_contexts(by_line, by_line))
        chosen: list[str] = []
        left = budget
        for test in self._ordered(tests):
            left -= self._seconds[test]
            if left < 0 and chosen:
                break
            chosen.append(test)
        return Chosen(tuple(chosen), sum(self._seconds[test] for test in chosen), len(tests))

    def _tests(self, contexts: Iterable[str]) -> set[str]:
        # a context is a test and one of its phases; what runs at import has none
        return {c.rpartition("|")[0] for c in contexts if c} & self._seconds.keys()

    def _ordered(self, tests: Iterable[str]) -> list[str]:
        rank: Counter[str] = Counter()
        cost: dict[str, float] = {}
        for test in sorted(tests, key=lambda test: (self._seconds[test], test)):
            file = test.partition("::")[0]
            rank[file] += 1
            cost[test] = rank[file] * max(self._seconds[test], 0.01)
        return sorted(cost, key=lambda test: (cost[test], test))


def _contexts(by_line: Mapping[int, Iterable[str]], lines: Iterable[int]) -> set[str]:
    return {context for line in lines for context in by_line.get(line, ())}
