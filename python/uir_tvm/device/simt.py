# SPDX-License-Identifier: Apache-2.0
"""Compile CUDA text for the host model of CUDA devices.

The text is compiled as it is, by g++, against headers that stand for the toolkit's.  The compiler's thread
sanitizer puts a call before every load and store; the model's own library answers those calls, not the
sanitizer's.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from .. import options
from ..errors import EnvironmentMismatchError, ToolchainError

__all__ = ["compile", "compiler", "headers", "library"]

#: How kernels are built: little optimisation keeps every access, and the lines, of the text.
FLAGS = (
    "-std=c++17",
    "-O1",
    "-g1",
    "-fPIC",
    "-fsanitize=thread",
    "--param=tsan-instrument-func-entry-exit=0",
    # The text converts pointers between types and wraps integers; nothing may be computed more exactly.
    "-fno-strict-aliasing",
    "-fwrapv",
    "-ffp-contract=off",
    # Frames lead from a device function to the line of the kernel that calls it.
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fno-exceptions",
    "-fvisibility=hidden",
    "-Wno-attributes",
    "-Wno-unknown-pragmas",
    "-DUIR_SIMT=1",
)
#: How they are linked: the model's library is loaded already when they are.
LINKED = "-luir_device"
#: Seconds that one compilation may take.
LIMIT = 600


def library() -> pathlib.Path:
    """The model's library, which compiled kernels are linked against.

    Raises
    ------
    EnvironmentMismatchError
        It was not built.
    """
    path = pathlib.Path(__file__).parent.with_name("libuir_device.so")
    if not path.is_file():
        raise EnvironmentMismatchError(
            f"The native library {path.name} is missing in {path.parent}: "
            "build it with `pip install -e .` in the source tree."
        )
    return path


def headers() -> pathlib.Path:
    """The folder of the model's headers: in the source tree, or beside the package in an installed wheel.

    Raises
    ------
    EnvironmentMismatchError
        It is in neither.
    """
    package = pathlib.Path(__file__).resolve().parents[1]
    for folder in (package.parents[1] / "src" / "device" / "simt" / "include", package / "simt_include"):
        if (folder / "cuda_runtime.h").is_file():
            return folder
    raise EnvironmentMismatchError(
        f"The headers of the host model are missing in {package}: install it again."
    )


def compiler() -> str:
    """The path of g++.

    Raises
    ------
    ToolchainError
        There is none.
    """
    found = shutil.which("g++")
    if found is None:
        raise ToolchainError(
            "There is no g++, with which the host model of CUDA devices compiles kernels.",
            where="PATH",
            need="GCC 11 or newer with its C++ compiler",
            remedy="install it (Debian: apt-get install g++), or run on a GPU (device='gpu')",
        )
    return found


@functools.lru_cache(maxsize=1)
def _surroundings(compiler_path: str, headers_path: str) -> bytes:
    """A digest of all that a compiled kernel depends on but its text."""
    digest = hashlib.sha256(repr((FLAGS, LINKED)).encode())
    version = subprocess.run([compiler_path, "--version"], capture_output=True, timeout=LIMIT, check=False)
    digest.update(version.stdout)
    for path in sorted(pathlib.Path(headers_path).rglob("*.h")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.digest()


def compile(source: str, *, limit: float = LIMIT) -> pathlib.Path:
    """Compile CUDA text for the host model; the result is kept, and found again by its hash.

    Parameters
    ----------
    source : str
        CUDA C++ as the printer emits it: kernels take pointers and integers, and all shared memory is the
        dynamic pool ``smem``.
    limit : float
        Seconds that the compiler may take.

    Returns
    -------
    pathlib.Path
        A shared object that exports the kernels; the text lies beside it as ``.cu``.

    Raises
    ------
    ToolchainError
        There is no g++, or it refuses the text; ``log`` is what it wrote.
    EnvironmentMismatchError
        The model's library or headers are missing.
    """
    gxx, include, model = compiler(), headers(), library()
    surroundings = _surroundings(gxx, str(include))
    folder = options.cache_dir() / "simt"
    target = folder / f"{hashlib.sha256(surroundings + source.encode()).hexdigest()[:32]}.so"
    if target.is_file():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    prelude = _prelude(folder, gxx, include, surroundings, limit)
    text = target.with_suffix(".cu")
    # Under names of their own first: two processes may compile the same text.
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        draft, built = pathlib.Path(scratch, target.name), pathlib.Path(scratch, "kernel.o")
        pathlib.Path(scratch, text.name).write_text(source)
        os.replace(pathlib.Path(scratch, text.name), text)
        flags = (*FLAGS, f"-I{include}", "-include", str(prelude))
        _run([gxx, *flags, "-x", "c++", "-c", str(text), "-o", str(built)], text, limit)
        # Without -fsanitize here: the sanitizer's own library must stay out.
        _run([gxx, "-shared", str(built), "-o", str(draft), f"-L{model.parent}", LINKED], text, limit)
        os.replace(draft, target)
    return target


def _prelude(
    folder: pathlib.Path, gxx: str, include: pathlib.Path, surroundings: bytes, limit: float
) -> pathlib.Path:
    """The prelude, compiled once for all texts: reading it takes longer than most of them."""
    header = folder / f"prelude-{surroundings.hex()[:16]}.h"
    compiled = header.with_name(header.name + ".gch")
    if not compiled.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            plain, draft = pathlib.Path(scratch, header.name), pathlib.Path(scratch, compiled.name)
            plain.write_text('#include "uir_simt/prelude.h"\n')
            os.replace(plain, header)
            command = [gxx, *FLAGS, f"-I{include}", "-x", "c++-header", str(header), "-o", str(draft)]
            _run(command, header, limit)
            os.replace(draft, compiled)
    return header


def _run(command: list[str], text: pathlib.Path, limit: float) -> None:
    """Run the compiler; its messages come in English, so that errors are found in them."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(
            f"g++ did not finish in {limit:.0f} seconds.",
            where=str(text),
            remedy="unroll less, or raise the limit",
        ) from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines()
        raise ToolchainError(
            "The text does not compile for the host model.",
            where=lines[0] if lines else str(text),
            need="CUDA C++ of the constructs that the printer emits",
            remedy="see the attribute log for all that g++ wrote",
            log=done.stderr,
        )
