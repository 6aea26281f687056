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
from collections.abc import Iterable

import attrs
import coverage
import pytest

#: The environment's word for the file of seconds.
SECONDS = "UIR_TEST_SECONDS"
#: Files of a map.
LINES_FILE, SECONDS_FILE = "lines.coverage", "seconds.json"

_seconds: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the seconds of a test, with those of its fixtures."""
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what was counted, once: workers tell their tests to the process that started them."""
    file = os.environ.get(SECONDS)
    if file and not hasattr(session.config, "workerinput"):
        pathlib.Path(file).write_text(json.dumps(_seconds))


@attrs.frozen
class Chosen:
    """Tests that run some lines.

    Parameters
    ----------
    tests : tuple of str
        Those that the budget allows, the quickest first.
    reached : int
        How many there are in all.
    """

    tests: tuple[str, ...]
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

    def choose(self, path: str, lines: Iterable[int], budget: float) -> Chosen:
        """The tests that run one of the lines, the quickest first, within a budget of seconds."""
        by_line = self._data.contexts_by_lineno(str(self._root / path))
        contexts = {context for line in lines for context in by_line.get(line, ())}
        # a context is a test and one of its phases; what runs at import has none
        reached = sorted(
            {c.rpartition("|")[0] for c in contexts if c}, key=lambda t: self._seconds.get(t, 0.0)
        )
        tests, left = [], budget
        for test in reached:
            left -= self._seconds.get(test, 0.0)
            if left < 0 and tests:
                break
            tests.append(test)
        return Chosen(tuple(tests), len(reached))
