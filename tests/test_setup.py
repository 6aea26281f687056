# SPDX-License-Identifier: Apache-2.0
"""How setup.py configures CMake: a fresh folder in groups of files, another one as its developer left it."""

from __future__ import annotations

import pathlib
import runpy

import pytest
import setuptools

SETUP = pathlib.Path(__file__).parents[1] / "setup.py"


@pytest.mark.parametrize(
    ("cache", "grouped"),
    [
        (None, "ON"),
        ("UIR_UNITY:BOOL=OFF\n", "OFF"),
        ("CMAKE_BUILD_TYPE:STRING=Release\nUIR_UNITY:BOOL=ON\n", "ON"),
        ("CMAKE_BUILD_TYPE:STRING=Release\n", "OFF"),
    ],
    ids=["fresh", "apart", "in_groups", "older"],
)
def test_a_folder_stays_as_it_was_configured(
    cache: str | None, grouped: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next installation would compile everything again, and the developer's files in groups."""
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    made = runpy.run_path(str(SETUP))
    if cache is not None:
        (tmp_path / "CMakeCache.txt").write_text(cache)
    assert made["_grouped"](tmp_path / "CMakeCache.txt") == grouped
    assert set(made["LIBRARIES"]) == {"uir_device", "uir_acl", "uir_cnrt", "uir_tvm"}
