# SPDX-License-Identifier: Apache-2.0
"""The list of requirements that `make env` gives pip: that of pip itself, for the package with an extra."""

from __future__ import annotations

import importlib.metadata
import tomllib

import pytest
from packaging.requirements import Requirement

from scripts.requirements import PROJECT, main, of_build, of_extra

PROJECT_FILE = tomllib.loads(PROJECT.read_text())


def asked_by_pip(extra: str) -> set[str]:
    """Names and versions, by the metadata that the installed package was given."""
    found, todo, seen = set(), [extra], set()
    rows = [Requirement(row) for row in importlib.metadata.requires("uir_tvm") or []]
    while todo:
        if (now := todo.pop()) in seen:
            continue
        seen.add(now)
        for row in rows:
            if row.marker is None or row.marker.evaluate({"extra": now}):
                if row.name.replace("-", "_") == "uir_tvm":
                    todo += row.extras
                else:
                    found.add(f"{row.name}{row.specifier}")
    return found


@pytest.mark.parametrize("extra", sorted(PROJECT_FILE["project"]["optional-dependencies"]))
def test_extras_bring_what_they_name(extra: str) -> None:
    """Extras within extras too; nothing twice, and nothing of the package itself."""
    listed = of_extra(PROJECT_FILE, extra)
    rows = [Requirement(row) for row in listed]
    here = {f"{row.name}{row.specifier}" for row in rows if row.marker is None or row.marker.evaluate()}
    assert here == asked_by_pip(extra)
    assert len(listed) == len(set(listed)) and all(not row.name.startswith("uir") for row in rows)


def test_a_build_is_given_what_the_backend_asks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.split() == of_build(PROJECT_FILE)
    assert "setuptools>=69" in of_build(PROJECT_FILE)


def test_no_such_extra() -> None:
    with pytest.raises(KeyError, match="everything"):
        of_extra(PROJECT_FILE, "everything")
