# SPDX-License-Identifier: Apache-2.0
"""What the optimiser sees in the host models' sources."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

SOURCES = pathlib.Path(__file__).parents[2] / "src"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("name", ["elementwise.cc"])
def test_no_access_beyond_an_array(name: str, tmp_path: pathlib.Path) -> None:
    """Elements of every width are held in arrays of the widest."""
    source = SOURCES / "device" / "bang" / name
    flags = ["-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-I", str(SOURCES)]
    command = ["g++", *flags, "-c", str(source), "-o", str(tmp_path / "object.o")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
