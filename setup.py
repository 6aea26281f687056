# SPDX-License-Identifier: Apache-2.0
"""Drives CMake: each native library is an extension that lands beside the Python package."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()
#: What CMake builds: the compiler's library, the host models of devices, what stands for vendors' runtimes.
LIBRARIES = re.findall(r"^add_library\((\w+) SHARED", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)

#: That of this interpreter's environment before any other.
CMAKE = (
    shutil.which("cmake", path=os.pathsep.join((sysconfig.get_path("scripts"), os.environ["PATH"])))
    or "cmake"
)


def _origin(module: str) -> str:
    """Where a module is, found without importing it."""
    spec = importlib.util.find_spec(module)
    return str(spec.origin) if spec is not None else ""


def _grouped(cache: pathlib.Path) -> str:
    """CMake's ``UIR_UNITY``: as a folder was configured before; a fresh one is built as fast as it goes."""
    if not cache.is_file():
        return "ON"
    chosen = re.search(r"^UIR_UNITY:BOOL=(\w+)$", cache.read_text(), re.MULTILINE)
    return chosen.group(1) if chosen else "OFF"


class CMakeBuild(build_ext):
    """Build the libraries with CMake against the installed tvm-ffi and TVM runtime."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".so"

    def run(self) -> None:
        self._run_cmake()
        super().run()
        if not self.inplace and not getattr(self, "editable_mode", False):
            # headers that kernels of the host model are compiled against; a source tree has them in src
            package = pathlib.Path(self.get_ext_fullpath("uir_tvm.libuir_device")).resolve().parent
            for model in ("simt", "ascendc", "bang"):
                headers = ROOT / "src/device" / model / "include"
                self.copy_tree(str(headers), str(package / f"{model}_include"))

    def _run_cmake(self) -> None:
        build = ROOT / "build"
        build.mkdir(parents=True, exist_ok=True)
        # A cache that another environment left (each isolated build of pip has its own) points at paths
        # that are gone.
        found_here = "\n".join([sys.executable, *map(_origin, ("tvm", "tvm_ffi"))])
        made_by = build / "configured-with.txt"
        cache = build / "CMakeCache.txt"
        grouped = _grouped(cache)
        if not made_by.is_file() or made_by.read_text() != found_here:
            cache.unlink(missing_ok=True)
        choices = (f"-DPython_EXECUTABLE={sys.executable}", f"-DUIR_UNITY={grouped}")
        subprocess.run([CMAKE, "-S", ROOT, "-B", build, *choices], check=True)
        made_by.write_text(found_here)
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
        subprocess.run([CMAKE, "--build", build, "--parallel", jobs], check=True)

    def build_extension(self, ext: Extension) -> None:
        target = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        self.copy_file(str(ROOT / "build" / target.name), str(target))


setup(
    ext_modules=[Extension(f"uir_tvm.lib{name}", sources=[]) for name in LIBRARIES],
    cmdclass={"build_ext": CMakeBuild},
)
