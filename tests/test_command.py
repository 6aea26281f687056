# SPDX-License-Identifier: Apache-2.0
"""The console script, in a process of its own: what it says where the package cannot be imported."""

from __future__ import annotations

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Python with the package's folder on its path."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT / "python"
    )


def test_versions_that_do_not_fit_are_said_in_one_line() -> None:
    found = run(
        "import importlib.metadata as m; real = m.version\n"
        "m.version = lambda name: '0.1.15' if name == 'apache-tvm-ffi' else real(name)\n"
        "import uir_command; uir_command.main()"
    )
    assert found.returncode == 1 and found.stdout == ""
    lines = found.stderr.strip().splitlines()
    assert len(lines) == 1 and "pip install" in lines[0] and "0.1.15" in lines[0]


def test_the_command_runs_where_they_fit() -> None:
    found = run("import sys; sys.argv = ['uir', '--version']; import uir_command; uir_command.main()")
    assert found.returncode == 0 and "0.1.0" in found.stdout, found.stderr


def test_other_import_errors_are_not_hidden() -> None:
    found = run("import sys; sys.modules['uir_tvm'] = None\nimport uir_command; uir_command.main()")
    assert found.returncode == 1 and "ModuleNotFoundError" in found.stderr
