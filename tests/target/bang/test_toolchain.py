# SPDX-License-Identifier: Apache-2.0
"""The vendor's compiler: found or absent, how it is called, what it says; a script stands in for it."""

from __future__ import annotations

import pathlib
import stat

import pytest
from uir_tvm.device.compilers import compile_source
from uir_tvm.errors import ToolchainError
from uir_tvm.target.bang import toolchain

SOURCE = "__mlu_entry__ void twice(float *x) {}\n"

#: Notes its arguments and the text that it gets, and answers with a file; refuses what says "wrong".
SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo "cncc 4.5 stand-in"; exit 0; fi
echo "$@" >> {log}
for last; do target=$last; done
if grep -q wrong kernel.mlu; then echo "kernel.mlu:1:2: error: wrong" >&2; exit 1; fi
cat kernel.mlu > "$target"
"""


@pytest.fixture
def toolkit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A toolkit's folder that the environment names; the log of its compiler is beside it."""
    program = tmp_path / "neuware" / "bin" / "cncc"
    program.parent.mkdir(parents=True)
    program.write_text(SCRIPT.format(log=tmp_path / "log"))
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("NEUWARE_HOME", str(tmp_path / "neuware"))
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "cache"))
    toolchain.forget()
    yield tmp_path
    toolchain.forget()


@pytest.fixture
def nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a compiler."""
    monkeypatch.delenv("NEUWARE_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "PLACES", ())
    toolchain.forget()
    yield
    toolchain.forget()


def test_the_environment_names_the_toolkit(toolkit: pathlib.Path) -> None:
    tool = toolchain.find()
    assert tool.path == toolkit / "neuware" / "bin" / "cncc"
    assert str(tool) == "cncc (cncc 4.5 stand-in)" and toolchain.available() == tool


def test_a_kernel_is_compiled_once(toolkit: pathlib.Path) -> None:
    code = compile_source(SOURCE, "372")
    assert code == SOURCE.encode(), "the text has its launchers"
    assert toolchain.compile(SOURCE, "372") == code
    (line,) = (toolkit / "log").read_text().splitlines()
    assert line == "-std=c++17 -O3 -shared -fPIC --bang-mlu-arch=mtp_372 kernel.mlu -o kernel.so"


def test_another_text_is_compiled_anew(toolkit: pathlib.Path) -> None:
    toolchain.compile(SOURCE, "372")
    toolchain.compile(SOURCE + "// more\n", "372")
    assert len((toolkit / "log").read_text().splitlines()) == 2


def test_what_the_compiler_refuses_is_said(toolkit: pathlib.Path) -> None:
    with pytest.raises(ToolchainError, match="refuses kernel.mlu") as caught:
        toolchain.compile("wrong\n", "372")
    assert caught.value.where == "kernel.mlu:1:2: error: wrong" and "error" in caught.value.log


def test_an_architecture_that_is_none_is_refused(toolkit: pathlib.Path) -> None:
    with pytest.raises(ToolchainError, match="no architecture"):
        toolchain.compile(SOURCE, "next; rm")


def test_a_compiler_that_does_not_run_is_named(
    toolkit: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = toolkit / "neuware" / "bin" / "cncc"
    program.write_text("#!/bin/sh\nexit 3\n")
    monkeypatch.setenv("PATH", str(toolkit))
    monkeypatch.setattr(toolchain, "PLACES", ())
    toolchain.forget()
    with pytest.raises(ToolchainError) as caught:
        toolchain.find()
    assert str(program) in caught.value.where


@pytest.mark.usefixtures("nothing")
def test_without_a_compiler_the_error_says_what_to_do() -> None:
    assert toolchain.available() is None
    with pytest.raises(ToolchainError, match="No compiler for BANG C") as caught:
        toolchain.compile(SOURCE, "372")
    assert "CNToolkit" in caught.value.need and "NEUWARE_HOME" in caught.value.remedy
