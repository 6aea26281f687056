# SPDX-License-Identifier: Apache-2.0
"""Faults that no test can find, because the code does the same with them: each in a list, with the reason."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable

import attrs

from .mutants import Mutant

FILE = pathlib.Path(__file__).with_name("equivalent.json")


@attrs.frozen
class Equivalent:
    """One entry of the list.

    Parameters
    ----------
    path : str
        Of the file, below the root of the repository.
    text : str
        The line of code that has the fault, without its indentation: line numbers move.
    before, after : str
        The code that is replaced, and by what.
    why : str
        Why nothing that a test could see changes.
    """

    path: str
    text: str
    before: str
    after: str
    why: str

    def is_of(self, mutant: Mutant, line: str) -> bool:
        """Whether a fault in a line of code is this one."""
        return (self.path, self.text, self.before, self.after) == (
            mutant.path,
            line.strip(),
            mutant.before,
            mutant.after,
        )


def listed(file: pathlib.Path = FILE) -> list[Equivalent]:
    """The entries of the list."""
    return [Equivalent(**entry) for entry in json.loads(file.read_text())]


def reasons(root: pathlib.Path, found: Iterable[Mutant], entries: Iterable[Equivalent]) -> dict[Mutant, str]:
    """Which of some faults are listed, and why."""
    entries = list(entries)
    why: dict[Mutant, str] = {}
    for mutant in found:
        line = (root / mutant.path).read_text().splitlines()[mutant.line - 1]
        for entry in entries:
            if entry.is_of(mutant, line):
                why[mutant] = entry.why
    return why
