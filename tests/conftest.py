# SPDX-License-Identifier: Apache-2.0
"""What tests run under: in the folders about kernels, each that is compiled is compared with its function.

A fault of the compiler itself fails the test: in a user's build the kernel would fall back.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest
from uir_tvm.errors import EquivalenceError

#: A comparison takes about as long as a kernel takes to compile; the other folders compile the same recipes.
COMPARED = frozenset({"conformance", "optimize", "schedules", "verify"})


class _Differences(logging.Handler):
    """Collects the differences that the compiler found, and then worked around."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[EquivalenceError] = []

    def emit(self, record: logging.LogRecord) -> None:
        args = record.args if isinstance(record.args, tuple) else ()
        self.found += [arg for arg in args if isinstance(arg, EquivalenceError)]


@pytest.fixture(autouse=True)
def differences(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[EquivalenceError]]:
    """Kernels whose iGraph did not compute what it stands for: none, unless the test takes them out."""
    folder = request.path.relative_to(request.config.rootpath / "tests").parts[0]
    if folder in COMPARED and "UIR_EQUIVALENCE" not in os.environ:
        monkeypatch.setenv("UIR_EQUIVALENCE", "sampled")
    if "UIR_FAULTS" not in os.environ:
        monkeypatch.setenv("UIR_FAULTS", "raise")
    handler = _Differences()
    logger = logging.getLogger("uir_tvm.verify.compared")
    level = logger.level
    # a test of `uir --quiet` leaves the loggers above it silent
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    yield handler.found
    logger.removeHandler(handler)
    logger.setLevel(level)
    assert not handler.found, "\n".join(map(str, handler.found))
