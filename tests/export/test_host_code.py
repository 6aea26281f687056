# SPDX-License-Identifier: Apache-2.0
"""Functions that the device does not take, as C: in a project they compute what the executable does."""

from __future__ import annotations

import pathlib
import subprocess

import pytest
import tvm
from tvm import relax
from uir_tvm import compile as uir_compile
from uir_tvm.export.host_code import host_code
from uir_tvm.export.write import write_project
from uir_tvm.kernel_graph import build_with
from uir_tvm.library.library_tables import NONE
from uir_tvm.target.ascend import project_on_model as ascend_host

from ..kernel_graph.programs import constant, module

op = relax.op


def test_a_model_in_float64_runs_on_the_host(tmp_path: pathlib.Path) -> None:
    """Vector cores have no float64: the kernel is C, between two products of the library."""

    def body(emit, x):
        y = emit(op.matmul(x, constant(8, 16)))
        wide = emit(op.astype(y, "float64"))
        narrow = emit(op.astype(emit(op.abs(emit(op.tanh(wide)))), "float32"))
        return emit(op.matmul(narrow, constant(16, 4, seed=1)))

    exe = uir_compile(module({"x": ((4, 8), "float32")}, body), "uir-ascend", name="wide")
    assert len(exe.report()["kernels_without_igraph"]) == 1
    project = write_project(exe, tmp_path / "p")
    assert (project.launches, project.library_calls, project.on_host) == (0, 2, 1)
    assert "## On the host" in (project.path / "README.md").read_text()
    program = ascend_host.build(project.path, tmp_path / "build")
    done = subprocess.run([program, "--project", project.path, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def function(dtype: str) -> tuple[tvm.tirx.PrimFunc, str]:
    mod = module({"x": ((2, 8, 16), dtype)}, lambda emit, x: emit(op.sum(x, axis=1)))
    ((name, func),) = build_with(mod, NONE).kernels.items()
    return func, name


def test_the_text_stands_alone() -> None:
    func, name = function("float32")
    code = host_code(func, name)
    assert [tuple(row["shape"]) for row in code["params"]] == [(2, 8, 16), (2, 16)]
    assert '#include "tvm_c.h"' in code["source"] and "tvm/" not in code["source"]
    assert f"__tvm_ffi_{name}(" in code["source"] and "__tvm_ffi_main" not in code["source"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_types_that_c_does_not_have(dtype: str) -> None:
    assert "refused" in host_code(*function(dtype))
