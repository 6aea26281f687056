# SPDX-License-Identifier: Apache-2.0
"""Files appear whole or not at all."""

from __future__ import annotations

import pathlib

import pytest
from uir_tvm.errors import ArtifactError, DatabaseError
from uir_tvm.whole_files import beside, replacing, writing


def test_a_file_takes_the_place_of_another(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with replacing(file, ArtifactError) as partial:
        partial.write_text("new")
        assert file.read_text() == "old"
    assert file.read_text() == "new" and list(tmp_path.iterdir()) == [file]


def test_what_fails_leaves_the_old_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(ArtifactError, match="cannot be written") as caught:
        with replacing(file, ArtifactError) as partial:
            partial.write_text("half")
            raise OSError(28, "No space left on device")
    assert "No space left" in caught.value.limit and caught.value.need and caught.value.remedy
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


def test_other_errors_stay_what_they_are(tmp_path: pathlib.Path) -> None:
    with pytest.raises(KeyError), writing(tmp_path, DatabaseError):
        raise KeyError("name")


def test_names_beside_a_file_are_short_and_differ(tmp_path: pathlib.Path) -> None:
    file = tmp_path / ("x" * 255)
    assert beside(file) != beside(file) and len(beside(file).name) < 255
