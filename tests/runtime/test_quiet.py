# SPDX-License-Identifier: Apache-2.0
"""Only the known notes vanish from standard error."""

from __future__ import annotations

import os

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
