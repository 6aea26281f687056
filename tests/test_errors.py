# SPDX-License-Identifier: Apache-2.0
"""The errors: how they read, and that each ends the command with a code of its own."""

from __future__ import annotations

import inspect

import pytest
from uir_tvm import errors
from uir_tvm.errors import (
    SEPARATOR,
    CapacityError,
    ParseError,
    ScheduleError,
    ToolchainError,
    UirError,
    VerifyError,
)

CLASSES = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, UirError)]


def test_message_reads_in_order() -> None:
    error = ScheduleError(
        "The tile is too large.",
        where="block softmax",
        need="98,304 bytes",
        limit="65,536",
        remedy="halve it",
    )
    assert str(error).splitlines() == [
        "The tile is too large.",
        "  where:  block softmax",
        "  need:   98,304 bytes",
        "  limit:  65,536",
        "  remedy: halve it",
    ]
    assert error.to_json() == {
        "error": "ScheduleError",
        "what": "The tile is too large.",
        "where": "block softmax",
        "need": "98,304 bytes",
        "limit": "65,536",
        "remedy": "halve it",
    }


def test_what_is_absent_takes_no_line() -> None:
    assert str(UirError("Wrong.", remedy="right it")) == "Wrong.\n  remedy: right it"


@pytest.mark.parametrize(
    "log, where",
    [
        ("Included\nk.cc:3:1: error: 'x' was not declared\nk.cc:4:1: error: more\n", "k.cc:3:1: error: 'x'"),
        ("collect2\n/usr/bin/ld: cannot find -luir_cnrt: none\n", "/usr/bin/ld: cannot find -luir_cnrt"),
        ("\n  killed\n", "killed"),
    ],
)
def test_a_compiler_is_quoted(log: str, where: str) -> None:
    """Its first line that speaks of an error, unless a place is given; all that it wrote is kept."""
    error = ToolchainError("The compiler refuses a file.", log=log)
    assert error.where.startswith(where) and error.log == log
    assert ToolchainError("It does not run.", where="cncc", log=log).where == "cncc"
    assert ToolchainError("No compiler was found.").where == ""


def test_parse_error_points_at_the_column() -> None:
    error = ParseError("Unexpected '}'.", line=3, column=5, source="    }")
    assert (error.line, error.column) == (3, 5)
    assert str(error).splitlines()[1:] == ["  where:  line 3, column 5", "        }", "        ^"]


def test_witness_is_part_of_the_place() -> None:
    error = VerifyError("Out of bounds.", rule="bounds", witness={"pid": 3, "i": 7}, where="move a, b")
    assert error.rule == "bounds" and "move a, b  (witness: pid=3, i=7)" in str(error)


@pytest.mark.parametrize("kind", [c for c in CLASSES if issubclass(c, CapacityError)])
def test_a_lack_of_room_has_its_figures_as_fields(kind: type[CapacityError]) -> None:
    """Given as keywords, or as the native code joins them behind the fields of its message."""
    error = kind("Full.", where="k", need="9 bytes", memory="sram", needed=9, available=4, remedy="less")
    joined = ["Full.", "k", "9 bytes", "", "less", "sram", "9", "4"]
    for each in (error, kind(SEPARATOR.join(joined))):
        assert (each.memory, each.needed, each.available) == ("sram", 9, 4)
        assert (each.what, each.where, each.need, each.remedy) == ("Full.", "k", "9 bytes", "less")
        assert each.to_json()["needed"] == 9 and "sram" not in str(each)


@pytest.mark.parametrize("kind", CLASSES)
def test_exit_codes(kind: type[UirError]) -> None:
    """Not 0 (success) nor 2 (wrong usage), and told apart unless one is a kind of the other."""
    assert kind.exit_code not in (0, 2) and kind.exit_code < 64 and kind.__doc__
    same = [c for c in CLASSES if c.exit_code == kind.exit_code]
    root = min(same, key=lambda c: len(c.__mro__))
    assert all(issubclass(c, root) for c in same)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("one\ntwo", "one"),
        ("", "ValueError"),
        (
            "Validation of 'heads':\n\n    576 is no multiple of 7\nmore",
            "Validation of 'heads': 576 is no multiple of 7",
        ),
        ("alone:", "alone:"),
    ],
)
def test_the_first_line_is_one_that_says_something(said: str, wanted: str) -> None:
    assert errors.first_line(ValueError(said)) == wanted
