# SPDX-License-Identifier: Apache-2.0
"""Modules of the benchmarks, as these import each other."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import Any

import pytest

BENCHMARKS = str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks")


@pytest.fixture(autouse=True)
def _benchmarks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process and in those that it starts; the modules stay what they are for all tests."""
    monkeypatch.setattr(sys, "path", [BENCHMARKS, *sys.path])


@pytest.fixture
def turns() -> Any:
    """The module `turns`."""
    return importlib.import_module("turns")


@pytest.fixture
def one_case() -> Any:
    """The module `one_case`."""
    return importlib.import_module("one_case")


@pytest.fixture
def case_rows() -> Any:
    """The module `case_rows`."""
    return importlib.import_module("case_rows")


@pytest.fixture
def cpu() -> Any:
    """The module `cpu`."""
    return importlib.import_module("cpu")
