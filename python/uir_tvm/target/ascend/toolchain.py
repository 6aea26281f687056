# SPDX-License-Identifier: Apache-2.0
"""Ascend C to code for an NPU by the vendor's compiler, on machines with or without an NPU.

from uir_tvm.target.ascend import toolchain

code = toolchain.compile(source, "dav-2201")    # a shared object: the kernels, and a launcher for each
"""

from __future__ import annotations

import os
import pathlib
import re

from ... import environment
from ...errors import ToolchainError
from ..vendor_compiler import Tool, VendorCompiler
from .launchers import with_launchers

#: Names of the compiler; it is called ccec in older toolkits.
NAMES = ("bisheng", "ccec")
#: Where the compiler is within a toolkit, newest release first; the last is installed for one kind of hosts.
WITHIN = (
    "bin",
    "tools/bisheng_compiler/bin",
    "compiler/ccec_compiler/bin",
    "compiler/bin",
    "*-linux/bin",
)
#: Where the toolkit's installer puts it.
PLACES = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest")
#: Variables of the environment that name a toolkit, first choice first.
VARIABLES = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
#: Flags beside the architecture's: those of the guide ("Basic use of compilation of AI Core operators",
#: shared libraries); the text's own flags order the pipes, so that automatic synchronisation stays off.
FLAGS = ("-x", "asc", "-std=c++17", "-O3", "-shared", "-fPIC")
#: Part of every cache key: raised when the flags or the launchers change.
CACHE_VERSION = 1

_COMPILER = VendorCompiler(
    language="Ascend C",
    folder="ascend",
    names=NAMES,
    roots=lambda: (*environment.folders(*VARIABLES), *map(pathlib.Path, PLACES)),
    within=WITHIN,
    searched=lambda: f"ASCEND_HOME_PATH, PATH, {', '.join(PLACES)}",
    need="bisheng of the CANN toolkit; no NPU is needed to compile",
    remedy="install the toolkit and source its set_env.sh, which sets ASCEND_HOME_PATH; "
    "the Ascend C source can be had, and the host model runs it, without one",
    public="a toolkit that knows the architecture and has the public API of Ascend C",
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
    """The command that compiles one text to a shared object."""
    return [os.fspath(tool), *FLAGS, f"--npu-arch={arch}", source, "-o", target]


def compile(source: str, arch: str, *, name: str = "kernel.cpp") -> bytes:
    """Compile an emitted text, with launchers, for one architecture; the result is kept by its hash.

    Parameters
    ----------
    source : str
        Ascend C as the printer emits it.
    arch : str
        As the toolkit names it, such as ``dav-2201``.
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
    if not re.fullmatch(r"dav-\d{4}", arch):
        raise ToolchainError(f"{arch!r} is no architecture.", need="dav- and four digits", where="arch")
    key = (str(CACHE_VERSION), arch, *FLAGS)
    return _COMPILER.compile(
        with_launchers(source), name, key, lambda tool, text, target: command(tool, arch, text, target)
    )
