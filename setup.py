# SPDX-License-Identifier: Apache-2.0
"""Drives CMake: the native library is one extension that lands beside the Python package."""

import os
import pathlib
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).parent.resolve()


class CMakeBuild(build_ext):
    """Build ``libuir_tvm.so`` with CMake against the installed tvm-ffi and TVM runtime."""

    def get_ext_filename(self, fullname: str) -> str:
        return os.path.join(*fullname.split(".")) + ".so"

    def build_extension(self, ext: Extension) -> None:
        target = pathlib.Path(self.get_ext_fullpath(ext.name)).resolve()
        build = (ROOT / "build").resolve()
        build.mkdir(parents=True, exist_ok=True)
        # A cache left by another interpreter (pip's isolated build) points at paths that are gone.
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        subprocess.run(
            ["cmake", "-S", ROOT, "-B", build, f"-DPython_EXECUTABLE={sys.executable}"], check=True
        )
        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count() or 1))
        subprocess.run(["cmake", "--build", build, "--parallel", jobs], check=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        self.copy_file(str(build / "libuir_tvm.so"), str(target))
        # The host model of CUDA devices: its library beside ours, and the headers that its kernels need.
        (target.parent / "libuir_simt.so").unlink(missing_ok=True)
        self.copy_file(str(build / "libuir_simt.so"), str(target.parent / "libuir_simt.so"))
        if not self.inplace and not getattr(self, "editable_mode", False):
            self.copy_tree(str(ROOT / "src/device/simt/include"), str(target.parent / "simt_include"))


setup(
    ext_modules=[Extension("uir_tvm.libuir_tvm", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
)
