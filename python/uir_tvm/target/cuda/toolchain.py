# SPDX-License-Identifier: Apache-2.0
"""CUDA sources to cubins, on machines with or without a GPU, and what the compiler says of the kernels.

from uir_tvm.target.cuda import toolchain

cubin = toolchain.compile(source, "sm_90a")
cubin["softmax"].registers, cubin.spills, cubin.warnings
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ... import environment
from ...cache import Cache, out_of_room, scratch
from ...dump_files import file_name
from ...errors import ToolchainError
from .cubin import Cubin, KernelFigures, read_figures, read_warnings, refuse_serialised
from .find_toolchain import CudaTool, available, find, forget
from .nvrtc import Library, NvrtcError

__all__ = [
    "ARCHITECTURES",
    "Cubin",
    "CudaTool",
    "KernelFigures",
    "ToolchainError",
    "available",
    "compile",
    "compile_all",
    "find",
    "forget",
]

#: What is built where the caller names nothing: A100, and H100 and H200.
ARCHITECTURES = ("sm_80", "sm_90a")
#: Part of every cache key: raised when the flags or the description change.
CACHE_VERSION = 2
#: Seconds that one compilation may take.
LIMIT = 600

_ARCH = re.compile(r"sm_\d{2,3}[af]?")
_FLAGS = {
    "nvcc": ("-cubin", "-std=c++17", "-lineinfo", "-Xptxas", "-v"),
    "nvrtc": ("--std=c++17", "--generate-line-info", "--ptxas-options=-v"),
}


def compile(
    source: str,
    arch: str,
    *,
    tool: CudaTool | str | None = None,
    flags: Sequence[str] = (),
    name: str = "kernel.cu",
) -> Cubin:
    """Compile a CUDA source for one architecture; the result is kept, and found again by its hash.

    Parameters
    ----------
    source : str
        CUDA C++.
    arch : str
        Such as ``sm_80`` or ``sm_90a``.
    tool : CudaTool or str, optional
        A compiler, or its kind (``nvcc``, ``nvrtc``); default: the first that `find` meets.
    flags : sequence of str
        Further flags, as the tool takes them.
    name : str
        What the source is called in messages.

    Returns
    -------
    Cubin
        With the figures of every kernel and the compiler's warnings.

    Raises
    ------
    ToolchainError
        No compiler, an architecture that it does not know, a source that does not compile, or one whose
        products of four warps ptxas makes one after the other.
    """
    if not _ARCH.fullmatch(arch):
        raise ToolchainError(
            f"{arch!r} is no architecture.", need="sm_ and a number, such as sm_80 or sm_90a", where="arch"
        )
    name = file_name(name)
    found = tool if isinstance(tool, CudaTool) else find(tool)
    cache = Cache("cubin")
    key = "\0".join([str(CACHE_VERSION), str(found), arch, *flags, name, source]).encode()
    if (kept := cache.read(key, ".cubin")) is not None:
        return Cubin.from_bytes(kept)
    data, log = _COMPILERS[found.kind](found, source, arch, flags, name)
    refuse_serialised(log, name, arch)
    cubin = Cubin(arch, data, read_figures(log), read_warnings(log), str(found))
    cache.remember(key, cubin.to_bytes(), ".cubin")
    return cubin


def compile_all(source: str, archs: Sequence[str] = ARCHITECTURES, **how: object) -> tuple[Cubin, ...]:
    """`compile` for several architectures at the same time, in their order."""
    with ThreadPoolExecutor(max(1, min(len(archs), environment.num_threads()))) as pool:
        return tuple(pool.map(lambda arch: compile(source, arch, **how), archs))  # type: ignore[arg-type]


def _refused(found: CudaTool, arch: str, name: str, log: str) -> ToolchainError:
    if (full := out_of_room(log)) is not None:
        return full
    unknown = "nsupported gpu architecture" in log or "invalid value for --gpu-architecture" in log
    return ToolchainError(
        f"{found} knows no architecture {arch}." if unknown else f"{found} refuses {name} for {arch}.",
        need="" if unknown else "a source without errors",
        remedy="name another architecture or install a newer toolkit" if unknown else "report the kernel",
        log=log,
    )


def _nvcc(found: CudaTool, source: str, arch: str, flags: Sequence[str], name: str) -> tuple[bytes, str]:
    with scratch("uir-nvcc-") as place:
        (place / name).write_text(source)
        command = [os.fspath(found.path), *_FLAGS["nvcc"], f"-arch={arch}", *flags]
        command += [f"-I{folder}" for folder in found.include] + ["-o", "kernel.cubin", name]
        try:
            # Run in the folder, so that messages name the source alone.
            done = subprocess.run(
                command, cwd=place, capture_output=True, text=True, errors="replace", timeout=LIMIT
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolchainError(
                f"{found} does not run.", where=str(error), remedy="reinstall it, or name another tool"
            ) from error
        log = done.stdout + done.stderr
        if done.returncode:
            raise _refused(found, arch, name, log)
        return (place / "kernel.cubin").read_bytes(), log


def _nvrtc(found: CudaTool, source: str, arch: str, flags: Sequence[str], name: str) -> tuple[bytes, str]:
    given = [f"--gpu-architecture={arch}", *_FLAGS["nvrtc"], *flags]
    given += [f"--include-path={folder}" for folder in found.include]
    try:
        return Library.load(found.path).compile(source, name, given)
    except NvrtcError as error:
        raise _refused(found, arch, name, str(error)) from error


_COMPILERS = {"nvcc": _nvcc, "nvrtc": _nvrtc}
