# SPDX-License-Identifier: Apache-2.0
"""Compilers of vendors: found or absent, how they are called, what they say; a script stands in for each."""

from __future__ import annotations

import pathlib
import stat
from collections.abc import Iterator
from types import ModuleType

import attrs
import pytest
from uir_tvm.device.compilers import compile_source
from uir_tvm.errors import ToolchainError
from uir_tvm.target.ascend import toolchain as ascend
from uir_tvm.target.bang import toolchain as bang


@attrs.frozen
class Vendor:
    """One vendor's compiler."""

    toolchain: ModuleType
    #: What it is called, and what it says of itself.
    program: str
    version: str
    #: The environment variables that name the toolkit's folder, the first of them first.
    variables: tuple[str, ...]
    #: The file that it is given, for an architecture, and how.
    file: str
    arch: str
    flags: str
    source: str
    language: str
    toolkit: str
    #: The part of a launcher that it is given behind the text; empty where the text has launchers itself.
    launcher: bytes = b""

    @property
    def wrong_arch(self) -> str:
        return self.arch + "; rm"


VENDORS = {
    "ascend": Vendor(
        ascend,
        "bisheng",
        "bisheng 15.0 stand-in",
        ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"),
        "kernel.cpp",
        "dav-2201",
        "-x asc -std=c++17 -O3 -shared -fPIC --npu-arch=dav-2201 kernel.cpp -o kernel.so",
        'extern "C" __global__ __aicore__ void twice(GM_ADDR x) {}\n',
        "Ascend C",
        "CANN",
        b"void twice_launch(",
    ),
    "bang": Vendor(
        bang,
        "cncc",
        "cncc 4.5 stand-in",
        ("NEUWARE_HOME",),
        "kernel.mlu",
        "372",
        "-std=c++17 -O3 -shared -fPIC --bang-mlu-arch=mtp_372 kernel.mlu -o kernel.so",
        "__mlu_entry__ void twice(float *x) {}\n",
        "BANG C",
        "CNToolkit",
    ),
}

#: Notes its arguments and the text that it gets, and answers with a file; refuses what says "wrong".
SCRIPT = """#!/bin/sh
if [ "$1" = --version ]; then echo "{version}"; exit 0; fi
echo "$@" >> {log}
for last; do target=$last; done
if grep -q wrong {file}; then echo "{file}:1:2: error: wrong" >&2; exit 1; fi
cat {file} > "$target"
"""


@pytest.fixture(params=VENDORS.values(), ids=list(VENDORS))
def vendor(request: pytest.FixtureRequest) -> Iterator[Vendor]:
    """One after the other, with nothing known of any compiler."""
    request.param.toolchain.forget()
    yield request.param
    request.param.toolchain.forget()


@pytest.fixture
def program(vendor: Vendor, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The compiler in a toolkit that the environment names; it writes its log beside the toolkit."""
    made = tmp_path / "toolkit" / "bin" / vendor.program
    made.parent.mkdir(parents=True)
    made.write_text(SCRIPT.format(log=tmp_path / "log", version=vendor.version, file=vendor.file))
    made.chmod(made.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv(vendor.variables[0], str(tmp_path / "toolkit"))
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "cache"))
    return made


@pytest.fixture
def nothing(vendor: Vendor, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a compiler."""
    for name in vendor.variables:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(vendor.toolchain, "PLACES", ())


def test_the_environment_names_the_toolkit(vendor: Vendor, program: pathlib.Path) -> None:
    tool = vendor.toolchain.find()
    assert tool.path == program and str(tool) == f"{vendor.program} ({vendor.version})"
    assert vendor.toolchain.available() == tool


def test_a_kernel_is_compiled_once_with_launchers(
    vendor: Vendor, program: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    code = compile_source(vendor.source, vendor.arch)
    assert code.startswith(vendor.source.encode()) and vendor.launcher in code
    assert vendor.launcher or code == vendor.source.encode(), "the text has its launchers"
    assert vendor.toolchain.compile(vendor.source, vendor.arch) == code
    assert (tmp_path / "log").read_text().splitlines() == [vendor.flags]


def test_another_text_is_compiled_anew(vendor: Vendor, program: pathlib.Path, tmp_path: pathlib.Path) -> None:
    vendor.toolchain.compile(vendor.source, vendor.arch)
    vendor.toolchain.compile(vendor.source + "// more\n", vendor.arch)
    assert len((tmp_path / "log").read_text().splitlines()) == 2


def test_what_the_compiler_refuses_is_said(vendor: Vendor, program: pathlib.Path) -> None:
    with pytest.raises(ToolchainError, match=f"refuses {vendor.file}") as caught:
        vendor.toolchain.compile("wrong\n", vendor.arch)
    assert caught.value.where == f"{vendor.file}:1:2: error: wrong" and "error" in caught.value.log


def test_an_architecture_that_is_none_is_refused(vendor: Vendor, program: pathlib.Path) -> None:
    with pytest.raises(ToolchainError, match="no architecture"):
        vendor.toolchain.compile(vendor.source, vendor.wrong_arch)


def test_a_compiler_that_does_not_run_is_named(
    vendor: Vendor, program: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text("#!/bin/sh\nexit 3\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(vendor.toolchain, "PLACES", ())
    with pytest.raises(ToolchainError) as caught:
        vendor.toolchain.find()
    assert str(program) in caught.value.where


@pytest.mark.usefixtures("nothing")
def test_without_a_compiler_the_error_says_what_to_do(vendor: Vendor) -> None:
    assert vendor.toolchain.available() is None
    with pytest.raises(ToolchainError, match=f"No compiler for {vendor.language}") as caught:
        vendor.toolchain.compile(vendor.source, vendor.arch)
    assert vendor.toolkit in caught.value.need and vendor.variables[0] in caught.value.remedy
