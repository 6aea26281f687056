# SPDX-License-Identifier: Apache-2.0
"""Every kernel's name makes a legal file's name, and different ones different names."""

from __future__ import annotations

import pathlib
import re

import pytest
from uir_tvm.dump_files import file_stem, write_dump


@pytest.mark.parametrize("name", ["add", "layer_norm_softmax_1"])
def test_usual_names_are_file_names(name: str) -> None:
    assert file_stem(name) == name


@pytest.mark.parametrize("name", ["a" * 300, "a/b", "../../etc/passwd", ".hidden", "-rf", "ä ö", ""])
def test_unusual_names_become_legal_file_names(name: str, tmp_path: pathlib.Path) -> None:
    path = write_dump(tmp_path, name, ".source.txt", "text")
    assert path.parent == tmp_path and path.read_text() == "text"
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", path.name) and path.name[0] not in ".-"


def test_unusual_names_stay_different() -> None:
    names = ["a" * 300, "a" * 301, "a/b", "a_b", "a b"]
    assert len({file_stem(name) for name in names}) == len(names)
