# SPDX-License-Identifier: Apache-2.0
"""Only the known notes vanish from standard error."""

from __future__ import annotations

import os
import threading

import pytest
from uir_tvm.runtime.quiet import without_scope_notes

NOTE = b"[12:00:00] /project/executable.cc:276: Warning: Scope Saving:\n"


def test_other_lines_stay(capfd: pytest.CaptureFixture[str]) -> None:
    with without_scope_notes():
        os.write(2, NOTE + b"Warning: something else\n" + NOTE)
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "Warning: something else\nafter\n"


def test_lines_before_an_error_stay(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), without_scope_notes():
        os.write(2, b"why\n" + NOTE)
        raise ValueError
    assert capfd.readouterr().err == "why\n"


def test_threads_that_overlap_leave_standard_error_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    """The one that began first ends first: it must not turn back what the other holds, nor end with that."""
    before = os.fstat(2)
    inside, leave = threading.Event(), threading.Event()

    def late() -> None:
        with without_scope_notes():
            inside.set()
            assert leave.wait(10)
            os.write(2, b"of the second\n" + NOTE)

    second = threading.Thread(target=late)
    with without_scope_notes():
        second.start()
        assert inside.wait(10)
        os.write(2, b"of the first\n" + NOTE)
    leave.set()
    second.join()
    os.write(2, b"after\n")
    assert (os.fstat(2).st_dev, os.fstat(2).st_ino) == (before.st_dev, before.st_ino)
    assert capfd.readouterr().err == "of the first\nof the second\nafter\n"


def test_no_place_for_a_temporary_file(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the notes are seen, and nothing fails."""

    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with without_scope_notes():
        os.write(2, NOTE)
    assert capfd.readouterr().err.encode() == NOTE
