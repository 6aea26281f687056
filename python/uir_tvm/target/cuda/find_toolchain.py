# SPDX-License-Identifier: Apache-2.0
"""Where a compiler for CUDA sources is: in PATH, a toolkit's folder, or packages that pip installed."""

from __future__ import annotations

import ctypes.util
import functools
import importlib.util
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

import attrs

from ... import environment
from ...errors import ToolchainError

#: What pip installs for nvcc to work where there is no toolkit (about 105 MB to download, 280 MB on disk).
PACKAGES = "'uir_tvm[cuda]'"
#: The oldest release whose compiler the emitted text is meant for: it knows sm_90a and fp8.
OLDEST = (12, 4)


@attrs.frozen
class CudaTool:
    """A compiler.

    Parameters
    ----------
    kind : str
        ``nvcc`` or ``nvrtc``.
    path : Path
        The program, or the shared library.
    version : str
        Such as ``13.0.88`` (NVRTC says only ``13.0``).
    include : tuple of Path
        Folders of headers that it does not find by itself.
    """

    kind: str
    path: pathlib.Path
    version: str
    include: tuple[pathlib.Path, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.version}"


def find(kind: str | None = None) -> CudaTool:
    """The first usable compiler; nvcc is preferred, its messages are those that users know.

    Parameters
    ----------
    kind : str, optional
        ``nvcc`` or ``nvrtc``; default: either.

    Raises
    ------
    ToolchainError
        There is none; what was found but cannot be used is named.
    """
    found, refused = _look()
    for tool in found:
        if kind in (None, tool.kind):
            return tool
    raise ToolchainError(
        f"No compiler for CUDA sources was found{'' if kind is None else ' of kind ' + repr(kind)}.",
        where="; ".join(refused) or "PATH, CUDA_HOME, CUDA_PATH, /usr/local/cuda, packages of this Python",
        need=f"nvcc or NVRTC of CUDA {OLDEST[0]}.{OLDEST[1]} or newer; no GPU is needed to compile",
        remedy=f"pip install {PACKAGES}, or set CUDA_HOME; the CUDA C++ source can be had without one",
    )


def available() -> CudaTool | None:
    """`find`, or None where there is no compiler."""
    found, _ = _look()
    return found[0] if found else None


def forget() -> None:
    """Look again next time (the environment changed)."""
    _look.cache_clear()


@functools.cache
def _look() -> tuple[tuple[CudaTool, ...], tuple[str, ...]]:
    """Usable compilers, best first; and why others are not."""
    found: list[CudaTool] = []
    refused: list[str] = []
    for candidates, probe in ((_nvcc_paths(), _probe_nvcc), (_nvrtc_paths(), _probe_nvrtc)):
        seen = set()
        for path in candidates:
            if path in seen:
                continue
            seen.add(path)
            result = probe(path)
            if isinstance(result, CudaTool):
                found.append(result)
            else:
                refused.append(f"{path}: {result}")
    return tuple(found), tuple(refused)


def _wheel_roots() -> Iterator[pathlib.Path]:
    """Folders ``nvidia/cu13`` and the like of this Python's packages."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        yield from sorted(pathlib.Path(place).glob("cu[0-9]*"), reverse=True)


def _toolkit_roots() -> Iterator[pathlib.Path]:
    yield from environment.folders("CUDA_HOME", "CUDA_PATH")
    yield pathlib.Path("/usr/local/cuda")
    yield from sorted(pathlib.Path("/usr/local").glob("cuda-*"), reverse=True)


def _nvcc_paths() -> Iterator[pathlib.Path]:
    for root in environment.folders("CUDA_HOME", "CUDA_PATH"):
        yield root / "bin" / "nvcc"
    if on_path := shutil.which("nvcc"):
        yield pathlib.Path(on_path)
    for root in (*_toolkit_roots(), *_wheel_roots()):
        if (root / "bin" / "nvcc").is_file():
            yield root / "bin" / "nvcc"


def _nvrtc_paths() -> Iterator[pathlib.Path]:
    for root in (*_toolkit_roots(), *_wheel_roots()):
        for folder in ("lib64", "lib"):
            libraries = sorted((root / folder).glob("libnvrtc.so.*"), key=lambda path: len(path.name))
            yield from libraries[:1]
    if name := ctypes.util.find_library("nvrtc"):
        yield pathlib.Path(name)


def _too_old(version: str) -> str:
    numbers = tuple(int(part) for part in version.split(".")[:2])
    return "" if numbers >= OLDEST else f"version {version} is older than {OLDEST[0]}.{OLDEST[1]}"


def _probe_nvcc(path: pathlib.Path) -> CudaTool | str:
    """The tool, or why it is none: pip's nvcc package does not bring all that it needs."""
    if not path.is_file():
        return "no such file"
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not run ({error})"
    match = re.search(r"V(\d+\.\d+\.\d+)", said)
    if match is None:
        return "says no version"
    if old := _too_old(match[1]):
        return old
    if not _host_compiler():
        return "needs a host compiler: install g++"
    include: tuple[pathlib.Path, ...] = ()
    root = path.resolve().parent.parent
    if root in [place.resolve() for place in _wheel_roots()]:
        parts = {
            "nvidia-nvvm": root / "nvvm" / "bin" / "cicc",
            "nvidia-cuda-runtime": root / "include" / "cuda_runtime.h",
            "nvidia-cuda-crt": root / "include" / "crt" / "host_config.h",
            "nvidia-cuda-cccl": root / "include" / "cccl" / "nv" / "target",
        }
        missing = [package for package, file in parts.items() if not file.is_file()]
        if missing:
            return f"incomplete: pip install {' '.join(missing)}"
        include = (root / "include" / "cccl",)
    return CudaTool("nvcc", path, match[1], include)


def _host_compiler() -> str | None:
    return shutil.which("g++") or shutil.which("c++") or shutil.which("gcc")


def _probe_nvrtc(path: pathlib.Path) -> CudaTool | str:
    from .nvrtc import Library

    try:
        version = Library.load(path).version()
    except OSError as error:
        return f"does not load ({error})"
    if old := _too_old(version):
        return old
    include = _headers(path)
    if not include:
        return "its headers are missing: pip install nvidia-cuda-runtime nvidia-cuda-cccl"
    return CudaTool("nvrtc", path, version, include)


def _headers(library: pathlib.Path) -> tuple[pathlib.Path, ...]:
    """Folders with cuda_fp16.h and nv/target, those beside the library first."""
    beside = [library.resolve().parent.parent] if library.is_absolute() else []
    for root in (*beside, *_toolkit_roots(), *_wheel_roots()):
        folders = (root / "include", root / "include" / "cccl")
        if (folders[0] / "cuda_fp16.h").is_file():
            places = tuple(folder for folder in folders if (folder / "nv" / "target").is_file())
            if places:
                return tuple(dict.fromkeys((folders[0], *places)))
    return ()
