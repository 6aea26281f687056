# SPDX-License-Identifier: Apache-2.0
"""Ascend C to code for an NPU by the vendor's compiler, on machines with or without an NPU.

from uir_tvm.target.ascend import toolchain

code = toolchain.compile(source, "dav-2201")    # a shared object: the kernels, and a launcher for each
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator

import attrs

from ... import options
from ...errors import ToolchainError
from .launchers import with_launchers

#: Names of the compiler; it is called ccec in older toolkits.
NAMES = ("bisheng", "ccec")
#: Where the compiler is within a toolkit, newest release first.
WITHIN = ("bin", "tools/bisheng_compiler/bin", "compiler/ccec_compiler/bin", "compiler/bin")
#: Where the toolkit's installer puts it.
PLACES = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest", "/usr/local/Ascend/latest")
#: Flags beside the architecture's: those of the guide ("Basic use of compilation of AI Core operators",
#: shared libraries); the text's own flags order the pipes, so that automatic synchronisation stays off.
FLAGS = ("-x", "asc", "-std=c++17", "-O3", "-shared", "-fPIC")
#: Part of every cache key: raised when the flags or the launchers change.
CACHE_VERSION = 1
#: Seconds that one compilation may take.
LIMIT = 600


@attrs.frozen
class Tool:
    """The compiler: its path, and the first line of what it says of its version."""

    path: pathlib.Path
    version: str

    def __str__(self) -> str:
        return f"{self.path.name} ({self.version})"


def find() -> Tool:
    """The first compiler that runs: of the toolkit that the environment names, of one installed, or in PATH.

    Raises
    ------
    ToolchainError
        There is none; what was found but does not run is named.
    """
    found, refused = _look()
    if found is None:
        raise ToolchainError(
            "No compiler for Ascend C was found.",
            where="; ".join(refused) or f"ASCEND_HOME_PATH, PATH, {', '.join(PLACES)}",
            need="bisheng of the CANN toolkit; no NPU is needed to compile",
            remedy="install the toolkit and source its set_env.sh, which sets ASCEND_HOME_PATH; "
            "the Ascend C source can be had, and the host model runs it, without one",
        )
    return found


def available() -> Tool | None:
    """`find`, or None where there is no compiler."""
    return _look()[0]


def forget() -> None:
    """Look again next time (the environment changed)."""
    _look.cache_clear()


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
    tool = find()
    text = with_launchers(source)
    what = "\0".join([str(CACHE_VERSION), str(tool), arch, *FLAGS, name, text])
    kept = options.cache_dir() / "ascend" / f"{hashlib.sha256(what.encode()).hexdigest()}.so"
    if kept.is_file():
        return kept.read_bytes()
    with tempfile.TemporaryDirectory(prefix="uir-ascend-") as scratch:
        place = pathlib.Path(scratch)
        (place / name).write_text(text)
        _run(command(tool.path, arch, name, "kernel.so"), place, name)
        code = (place / "kernel.so").read_bytes()
        _keep(place / "kernel.so", kept)
    return code


def _keep(made: pathlib.Path, kept: pathlib.Path) -> None:
    """Into the cache, whole or not at all; a cache that cannot be written is none."""
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=kept.parent)
        os.close(handle)
        shutil.copyfile(made, draft)
        os.replace(draft, kept)
    except OSError:
        return


def _run(line: list[str], folder: pathlib.Path, name: str) -> None:
    try:
        # in the folder, so that messages name the source alone
        done = subprocess.run(
            line, cwd=folder, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolchainError(
            f"{line[0]} does not run.", where=str(error), remedy="install the toolkit again"
        ) from error
    if done.returncode:
        log = done.stdout + done.stderr
        errors = [row.strip() for row in log.splitlines() if re.search(r"\berror\b", row)]
        raise ToolchainError(
            f"{pathlib.Path(line[0]).name} refuses {name}.",
            where=errors[0] if errors else log.strip()[:500],
            need="a toolkit that knows the architecture and has the public API of Ascend C",
            remedy="see the attribute log for all that it wrote; report the kernel",
            log=log,
        )


def _candidates() -> Iterator[pathlib.Path]:
    for root in (*options.ascend_homes(), *map(pathlib.Path, PLACES)):
        for name in NAMES:
            yield from (root / folder / name for folder in WITHIN)
            # installed for one architecture of hosts
            yield from sorted(root.glob(f"*-linux/bin/{name}"))
    for name in NAMES:
        if found := shutil.which(name):
            yield pathlib.Path(found)


@functools.cache
def _look() -> tuple[Tool | None, tuple[str, ...]]:
    """The first compiler that runs, and why others before it do not."""
    refused: list[str] = []
    for path in dict.fromkeys(_candidates()):
        if not path.is_file():
            continue
        try:
            done = subprocess.run(
                [os.fspath(path), "--version"], capture_output=True, text=True, timeout=60, check=True
            )
            return Tool(path, (done.stdout.strip() or "no version").splitlines()[0]), tuple(refused)
        except (OSError, subprocess.SubprocessError) as error:
            refused.append(f"{path}: {error}")
    return None, tuple(refused)
