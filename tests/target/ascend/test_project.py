# SPDX-License-Identifier: Apache-2.0
"""The texts of a project for Ascend: against a golden, and piece by piece."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from typing import Any

import attrs
import pytest
from uir_tvm.errors import ExportError
from uir_tvm.export.host_program import host_program
from uir_tvm.target.ascend.project import soc, split, texts
from uir_tvm.target.ascend.toolkit import CANN

from .project_program import SOURCE, ByHand

GOLDEN = pathlib.Path(__file__).with_name("golden")


def written() -> dict[str, str]:
    exe: Any = ByHand()
    return dict(texts(host_program(exe)))


def test_files() -> None:
    assert sorted(written()) == [
        "CMakeLists.txt",
        "README.md",
        "device.cpp",
        "device.h",
        "kernels/scale_0.cpp",
        "kernels/scale_1.cpp",
        "library.cpp",
        "library.h",
        "main.cpp",
        "model.cpp",
        "model.h",
        "run.sh",
    ]


@pytest.mark.parametrize("name", ["model.cpp", "CMakeLists.txt", "README.md"])
def test_golden(name: str) -> None:
    """The generated files, letter by letter; ``UIR_UPDATE_GOLDEN=1 pytest`` of this file writes them anew."""
    path = GOLDEN / f"project_{name}"
    if os.environ.get("UIR_UPDATE_GOLDEN"):
        path.write_text(written()[name])
    assert written()[name] == path.read_text()


def test_one_kernel_in_a_file() -> None:
    """The toolkit's CMake takes one kernel in a file: what stands before the first stands in each."""
    first, second = split(SOURCE).values()
    head = SOURCE[: SOURCE.index("// half")]
    assert first.startswith(head + "// half = 2 * y\nextern") and "scale_1" not in first
    assert second.startswith(head + "// out = half + x\nextern") and "scale_0" not in second
    assert split(first) == {"scale_0": first}, "a text of one kernel stays as it is"


def test_a_model_without_library_calls_has_no_library() -> None:
    exe: Any = ByHand()
    program = host_program(exe)
    files = dict(texts(attrs.evolve(program, groups=program.groups[1:])))
    assert "library.h" not in files and "library.h" not in files["model.cpp"]
    assert "opapi" not in files["CMakeLists.txt"]


def test_a_dtype_that_files_do_not_have() -> None:
    exe: Any = ByHand()
    program = host_program(exe)
    (spec, buffer), *_ = program.inputs
    narrow = attrs.evolve(program, inputs=((attrs.evolve(spec, dtype="float8_e4m3fn"), buffer),))
    with pytest.raises(ExportError, match="float8_e4m3fn"):
        dict(texts(narrow))


def test_the_toolkit_s_names_of_devices() -> None:
    assert [soc(name) for name in ("910b1", "910b4")] == ["Ascend910B1", "Ascend910B4"]


def _printed_for(version: str) -> dict[str, str]:
    exe: Any = ByHand()
    program = host_program(exe)
    line = f"// for dav-2201, CANN {version}"
    sources = {name: text.replace("// two kernels", line) for name, text in program.sources.items()}
    return dict(texts(attrs.evolve(program, sources=sources)))


@pytest.mark.parametrize("version", CANN.versions)
def test_a_project_says_which_toolkit_it_needs(version: str) -> None:
    files = _printed_for(version)
    readme = " ".join(files["README.md"].split())
    assert f"the toolkit {CANN.needs[version]} with" in readme
    assert f"The kernels have the names of CANN {version};" in readme
    assert f"printed for CANN {version}, which needs" in files["CMakeLists.txt"]


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no cmake")
@pytest.mark.parametrize(
    ("version", "installed", "warned"),
    [("8", "8.0.RC3", False), ("8", "9.1.0", False), ("9.0", "8.5.0", True), ("9.1", "9.0.0", True)]
    + [("9.1", "9.1.0", False), ("9.1", "", False)],
)
def test_an_earlier_toolkit_is_warned_of(
    version: str, installed: str, warned: bool, tmp_path: pathlib.Path
) -> None:
    """CMake itself reads the toolkit's file of its version; where there is none it says nothing."""
    if installed:
        (tmp_path / "aarch64-linux").mkdir()
        told = tmp_path / "aarch64-linux" / "ascend_toolkit_install.info"
        told.write_text(f"package_name=Ascend-cann-toolkit\nversion={installed}\narch=aarch64\n")
    _, _, rest = _printed_for(version)["CMakeLists.txt"].partition("file(GLOB cann_says")
    script = tmp_path / "check.cmake"
    script.write_text("file(GLOB cann_says" + rest.partition("\n\n")[0])
    command = ["cmake", f"-DASCEND_CANN_PACKAGE_PATH={tmp_path}", "-P", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ("uir compile --cann" in " ".join(done.stderr.split())) is warned, done.stderr
