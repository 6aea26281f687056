# SPDX-License-Identifier: Apache-2.0
"""The console script, in a process of its own: what it imports, and says where the package cannot be."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import click
import onnx
from onnx import TensorProto, helper
from uir_tvm import cli
from uir_tvm.cli.base import Command

ROOT = pathlib.Path(__file__).parents[1]


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with the package's folder on its path."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT / "python",
        env={**os.environ, **environment},
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


#: Runs commands one after the other, each given as JSON, and prints which of the packages it has by then.
IMPORTS = """
import contextlib, io, json, sys
import uir_command
for arguments in map(json.loads, sys.argv[1:]):
    sys.argv = ["uir", *arguments]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            uir_command.main()
        except SystemExit as end:
            code = end.code
    heavy = [name for name in ("tvm", "torch", "onnx", "transformers", "xgboost") if name in sys.modules]
    print(json.dumps([code, heavy]))
"""


def test_commands_import_only_what_they_need(tmp_path: pathlib.Path) -> None:
    """torch takes seconds to import, and TVM imports it wherever it is installed unless told otherwise."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 8])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), tmp_path / "model.onnx")
    #: Arguments, exit code, and what is imported in the process after them.
    cases = [
        (["--help"], 0, []),
        (["--version"], 0, []),
        (["compile", "--help"], 0, []),
        (["tune", "--help"], 0, []),
        (["compile", "model.onnx", "--targte", "uir-cpu"], 2, []),
        (["tune-server", "--port", "0", "--key", "k"], 2, []),
        (["passes"], 0, ["tvm"]),
        (["db", "list", "shipped"], 0, ["tvm"]),
        (["compile", str(tmp_path / "model.onnx")], 0, ["tvm", "onnx"]),
        (["inspect", str(tmp_path / "model.uir")], 0, ["tvm", "onnx"]),
        (["run", str(tmp_path / "model.uir"), "--random"], 0, ["tvm", "onnx"]),
    ]
    found = run(IMPORTS, *[json.dumps(arguments) for arguments, *_ in cases])
    assert found.returncode == 0, found.stderr
    said = [json.loads(line) for line in found.stdout.splitlines()]
    assert said == [[code, heavy] for _, code, heavy in cases]


def test_every_command_loads_tvm_by_itself() -> None:
    """None imports TVM before it has chosen whether torch comes with it."""

    def leaves(group: click.Group) -> list[click.Command]:
        found = []
        for command in group.commands.values():
            found += leaves(command) if isinstance(command, click.Group) else [command]
        return found

    commands = leaves(cli.main)
    assert len(commands) > 10
    assert [command.name for command in commands if not isinstance(command, Command)] == []


def test_any_module_may_be_the_first_that_is_imported() -> None:
    """TVM, while it is imported, imports this package: nothing of it is half imported then."""
    code = "import sys; sys.modules['torch'] = None\nfrom uir_tvm import hardware; print(hardware.kinds())"
    found = run(code, PYTHONWARNINGS="error::UserWarning")
    assert found.returncode == 0 and "cuda" in found.stdout, found.stderr


def test_any_module_loads_the_native_library() -> None:
    """Also where TVM does not load this package by itself."""
    code = """
import os, sys
sys.modules["torch"] = None
import tvm, uir_tvm
assert tvm.get_global_func("uir.affine.var", allow_missing=True) is None
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        status = 1
        try:
            __import__("uir_tvm." + name)
            status = int(tvm.get_global_func("uir.affine.var", allow_missing=True) is None)
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        print(name)
"""
    found = run(code, "igraph", "library", "tune", "api", TVM_DEVICE_BACKEND_AUTOLOAD="0")
    assert (found.returncode, found.stdout) == (0, ""), found.stdout + found.stderr
