# SPDX-License-Identifier: Apache-2.0
"""What was tried is on the disk, and a crash costs at most the line that was being written."""

from __future__ import annotations

import pathlib

import pytest
from uir_tvm.errors import DatabaseError
from uir_tvm.tune import ScheduleDatabase, key_of
from uir_tvm.tune.job import REFUSED, Result
from uir_tvm.tune.journal import Confirmation, Journal, Trial

DEFAULT = Trial("00ff", "relu", "", None, Result((1e-3, 2e-3)), 0.5)
CANDIDATE = Trial("00ff", "relu", "abc", {"trace": [[], []]}, Result(outcome=REFUSED, said="no\nroom"), 1.5)
CONFIRMED = Confirmation("00ff", "abc", [2e-3, 3e-3, 1e-3], [1e-3, 1e-3, 4e-3], True)


@pytest.fixture
def journal(tmp_path: pathlib.Path) -> Journal:
    made = Journal(tmp_path, key_of("uir-cpu"))
    made.add(DEFAULT)
    made.add(CANDIDATE, CONFIRMED)
    return made


def test_what_was_added_is_there(journal: Journal, tmp_path: pathlib.Path) -> None:
    """For another process, and in the folder of the key."""
    again = Journal(tmp_path, key_of("uir-cpu"))
    assert list(again.lines()) == [DEFAULT, CANDIDATE, CONFIRMED]
    assert again.path.parent.parent.name == key_of("uir-cpu").folder
    assert ScheduleDatabase(tmp_path).entries() == []


def test_another_key_has_its_own(journal: Journal, tmp_path: pathlib.Path) -> None:
    assert list(Journal(tmp_path, key_of("uir-ascend", "model")).lines()) == []


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_is_left_out(cut: int, journal: Journal) -> None:
    """Wherever it is cut, and what is added next is whole."""
    text = journal.path.read_bytes()
    journal.path.write_bytes(text[:-cut])
    assert list(journal.lines()) == [DEFAULT, CANDIDATE] + [CONFIRMED] * (cut == 1)
    journal.add(DEFAULT)
    assert list(journal.lines())[-1] == DEFAULT


@pytest.mark.parametrize(
    "line", ["{}", "[]", '{"what": "dream"}', '{"what": "trial", "origin": ""}', "nonsense"]
)
def test_a_damaged_line_is_named(line: str, journal: Journal) -> None:
    lines = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    with pytest.raises(DatabaseError, match="Line 2 of"):
        list(journal.lines())


def test_a_folder_that_cannot_be_made(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseError, match="cannot be written"):
        Journal(tmp_path / "file", key_of("uir-cpu")).add(DEFAULT)


def test_comparisons() -> None:
    """Medians; what failed has no ratio that could be taken for a gain."""
    assert CONFIRMED.seconds == (2e-3, 1e-3) and CONFIRMED.ratio == 0.5
    assert Confirmation("", "", [1.0], [], False).ratio == float("inf")
    assert Confirmation("", "", [], [1.0], False).ratio == float("inf")
