# SPDX-License-Identifier: Apache-2.0
"""Plant a fault in a copy of the repository and run the tests that may find it there."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import attrs
import pytest
from uir_tvm import environment

from . import nest
from .chosen import CHOSEN, functions
from .mutants import Mutant
from .reach import Reach

#: Seconds beyond those that the tests should take: a fault that makes a loop endless is found as well.
PATIENCE = 60.0
#: How much longer a test may take than when the map was made.
SLOWER = 4
#: Seconds that a file of tests may take, of which the map knows nothing.
UNKNOWN = 30.0
ENDLESS = "endless"
PLUGIN = "tests.mutation.chosen"
#: What all tests import that is none of ours: half of the seconds of a run.
IMPORTED = ("tvm", "numpy", "hypothesis")


class Copy:
    """The repository without its history, builds and maps, where faults stand and tests run.

    No fault ever stands in the original, and what a faulty compiler made is kept from others.

    Parameters
    ----------
    root : pathlib.Path
        Of the repository.
    folder : pathlib.Path
        Where the copy will be.
    imported : tuple of str
        What is imported once for all runs.
    """

    def __init__(self, root: pathlib.Path, folder: pathlib.Path, imported: Sequence[str] = IMPORTED) -> None:
        shutil.copytree(root, folder, ignore=_ignored(root))
        self.folder = folder
        self._own = folder / "mutants"
        (self._own / "tmp").mkdir(parents=True)
        if environment.cache_dir().is_dir():
            shutil.copytree(environment.cache_dir(), self._own / "cache")
        variables = {
            **os.environ,
            "PYTHONPATH": str(folder / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, nest.__file__, *imported],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Copy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def first_failure(self, tests: Sequence[str], patience: float) -> str:
        """The first of some tests that fails, in their order; empty where all pass.

        Parameters
        ----------
        tests : sequence of str
            As pytest names them; a file stands for all of its tests.
        patience : float
            Seconds after which they count as endless.
        """
        # a file that is gone would end the run, as if a fault were found
        tests = [test for test in tests if (self.folder / test.partition("::")[0]).exists()]
        if not tests:
            return ""
        status, printed = self._pytest(tests, ("-x",), patience)
        if status is None:
            return ENDLESS
        if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return ""
        failed = _failed(printed)
        return failed[0] if failed else f"pytest ended with {status}"

    def unsound(self, verdicts: Mapping[str, str]) -> dict[str, str]:
        """Faults whose finder fails without a fault too, and that finder."""
        finders = {test for test in verdicts.values() if test.partition("::")[0].endswith(".py")}
        # a file alone stands for what could not be collected
        files = {test for test in finders if "::" not in test}
        failed: set[str] = set()
        for tests, options in ((finders - files, ()), (files, ("--collect-only",))):
            if tests:
                _, printed = self._pytest(sorted(tests), options, UNKNOWN * len(tests))
                failed |= set(_failed(printed))
        return {fault: test for fault, test in verdicts.items() if test in failed}

    def _pytest(
        self, tests: Sequence[str], options: Sequence[str], patience: float
    ) -> tuple[int | None, str]:
        """How pytest ended, None where it took longer than one waits, and what it printed."""
        names, called, printed = (self._own / name for name in ("tests", "functions", "printed"))
        names.write_text("\n".join(tests))
        called.write_text("\n".join(functions(tests)))
        plain = ("-q", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider", "-p", PLUGIN)
        variables = {
            "UIR_CACHE_DIR": str(self._own / "cache"),
            "TMPDIR": str(self._own / "tmp"),
            CHOSEN: str(names),
        }
        asked = {
            "arguments": [*plain, *options, f"@{called}"],
            "variables": variables,
            "printed": str(printed),
            "patience": patience,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        status = json.loads(self._process.stdout.readline())
        return status, printed.read_text()


@attrs.frozen
class Judge:
    """Says which test finds a fault.

    Parameters
    ----------
    reach : Reach
        The map.
    seconds : float
        That the tests of one fault took when the map was made.
    changed : tuple of str
        Files of tests that are newer than the map: they come first, whatever lines they run, and of
        them those that mirror the faulty file.
    """

    reach: Reach
    seconds: float
    changed: tuple[str, ...] = ()

    def verdict(self, mutant: Mutant, copy: Copy) -> str:
        """The first test that finds a fault that is planted in a copy; empty where none does."""
        file = copy.folder / mutant.path
        text = file.read_text()
        chosen = self.reach.choose(mutant.path, mutant.lines(text), mutant.around(text), self.seconds)
        tests = (*sorted(self.changed, key=lambda test: _distance(test, mutant.path)), *chosen.tests)
        if not tests:
            return ""
        try:
            file.write_text(mutant.planted(text))
            patience = SLOWER * (chosen.seconds + UNKNOWN * len(self.changed)) + PATIENCE
            return copy.first_failure(tests, patience)
        finally:
            file.write_text(text)


def _ignored(root: pathlib.Path) -> Callable[[str, list[str]], set[str]]:
    """What a copy goes without: history, builds, and at the root the maps and results of this tool."""
    anywhere = shutil.ignore_patterns(
        ".git", ".venv*", "build", "dist", "__pycache__", "*.egg-info", ".hypothesis"
    )
    own = shutil.ignore_patterns("mutants*")

    def ignored(folder: str, names: list[str]) -> set[str]:
        return anywhere(folder, names) | (own(folder, names) if pathlib.Path(folder) == root else set())

    return ignored


def _distance(test: str, path: str) -> tuple[bool, int]:
    """How far a file of tests is from the one that mirrors a file of the package."""
    file, code = pathlib.PurePath(test.partition("::")[0]), pathlib.PurePath(path)
    folders = zip(file.parts[1:-1], code.parts[2:-1], strict=False)
    alike = itertools.takewhile(lambda pair: pair[0] == pair[1], folders)
    return file.name != f"test_{code.name}", -len(list(alike))


def _failed(printed: str) -> list[str]:
    """The tests, and files, that pytest lists as failed."""
    lines = [line for line in printed.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return [line.partition(" ")[2].split(" - ")[0] for line in lines]
