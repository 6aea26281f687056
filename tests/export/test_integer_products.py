# SPDX-License-Identifier: Apache-2.0
"""A project of a model of bytes multiplies them by the operator library, whatever the number of rows."""

from __future__ import annotations

import pathlib
import subprocess

import numpy as np
import uir_tvm
from uir_tvm.export.write import write_project
from uir_tvm.target.ascend import project_on_model

from tests.conformance.byte_problems import PROBLEMS


def test_rows_of_bytes(tmp_path: pathlib.Path) -> None:
    """One build; every byte is that of integers."""
    problem = PROBLEMS["open rows"]
    exe = uir_tvm.compile(problem.model(), "uir-ascend")
    project = write_project(exe, tmp_path / "project")
    assert project.library_calls == 1 and not project.on_host
    assert "aclnnQuantMatmulV4(" in (project.path / "quant_matmul.cpp").read_text()
    assert "QuantMatmul(device" in (project.path / "model.cpp").read_text()
    assert "CANN 8.0 or later" in (project.path / "README.md").read_text()
    program = project_on_model.build(project.path, tmp_path / "build")
    for rows in (1, 5):
        x = np.resize(problem.numbers()[0], (rows, problem.k))
        x.tofile(tmp_path / "x.bin")
        command = [program, "--project", project.path, "--output", tmp_path, "--size", f"rows={rows}"]
        done = subprocess.run([*command, tmp_path / "x.bin"], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        got = np.fromfile(tmp_path / "output0.bin", problem.dtype).reshape(rows, problem.n)
        np.testing.assert_array_equal(got, problem.expected(x))
