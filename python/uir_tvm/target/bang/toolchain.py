# SPDX-License-Identifier: Apache-2.0
"""BANG C to code for an MLU by the vendor's compiler, on machines with or without an MLU.

from uir_tvm.target.bang import toolchain

code = toolchain.compile(source, "372")    # a shared object: the kernels, and the text's launchers
"""

from __future__ import annotations

import os
import pathlib
import re

from ... import environment
from ...errors import ToolchainError
from ..vendor_compiler import Tool, VendorCompiler

#: Where the toolkit's installer puts it.
PLACES = ("/usr/local/neuware",)
#: Flags beside the architecture's, as public kernels are compiled to shared objects with.
FLAGS = ("-std=c++17", "-O3", "-shared", "-fPIC")
#: Part of every cache key: raised when the flags change.
CACHE_VERSION = 1

_COMPILER = VendorCompiler(
    language="BANG C",
    folder="bang",
    names=("cncc",),
    roots=lambda: (*environment.folders("NEUWARE_HOME"), *map(pathlib.Path, PLACES)),
    within=("bin",),
    searched=lambda: f"NEUWARE_HOME, PATH, {', '.join(PLACES)}",
    need="cncc of Cambricon's CNToolkit; no MLU is needed to compile",
    remedy="install the toolkit and set NEUWARE_HOME to its folder; "
    "the BANG C source can be had, and the host model runs it, without one",
    public="a toolkit that knows the architecture",
)


def find() -> Tool:
    """The first compiler that runs: of the toolkit that the environment names, of one installed, or in PATH.

    Raises
    ------
    ToolchainError
        There is none; what was found but does not run is named.
    """
    return _COMPILER.find()


def available() -> Tool | None:
    """`find`, or None where there is no compiler."""
    return _COMPILER.available()


def forget() -> None:
    """Look again next time (the environment changed)."""
    _COMPILER.forget()


def command(tool: pathlib.Path, arch: str, source: str, target: str) -> list[str]:
    """The command that compiles one text to a shared object; CNRT is in the process already."""
    return [os.fspath(tool), *FLAGS, f"--bang-mlu-arch=mtp_{arch}", source, "-o", target]


def compile(source: str, arch: str, *, name: str = "kernel.mlu") -> bytes:
    """Compile an emitted text for one architecture; the result is kept by its hash.

    Parameters
    ----------
    source : str
        BANG C as the printer emits it.
    arch : str
        Number of the architecture, such as ``372``.
    name : str
        What the source is called in messages.

    Returns
    -------
    bytes
        A shared object with a function ``KERNEL_launch`` for each kernel.

    Raises
    ------
    ToolchainError
        No compiler, an architecture that is none, or a source that does not compile.
    """
    if not re.fullmatch(r"\d{3}", arch):
        raise ToolchainError(f"{arch!r} is no architecture.", need="three digits", where="arch")
    key = (str(CACHE_VERSION), arch, *FLAGS)
    return _COMPILER.compile(source, name, key, lambda tool, text, out: command(tool, arch, text, out))
