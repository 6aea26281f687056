# SPDX-License-Identifier: Apache-2.0
"""Compile the host program of an exported project against stand-ins of a vendor's headers and libraries."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
from collections.abc import Sequence

from ..device.text_model import compiler
from ..errors import ToolchainError

#: How files are compiled, by the end of their names; C of the host is TVM's, with warnings.
FLAGS = {".cpp": ("-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"), ".c": ("-x", "c", "-std=c11", "-O1")}
#: Seconds that a compilation may take.
LIMIT = 600


def build_program(
    project: pathlib.Path,
    folder: pathlib.Path,
    stubs: Sequence[pathlib.Path],
    headers: pathlib.Path,
    links: Sequence[str],
    objects: str | pathlib.Path | None = None,
) -> pathlib.Path:
    """The program of a project; its path.

    Parameters
    ----------
    stubs : sequence of Path
        Further sources, generated into the folder.
    headers : Path
        The stand-ins' headers.
    links : sequence of str
        What the program is linked with.
    objects : str or Path, optional
        Where compiled files are kept, and found by a hash of what they depend on. Default: `folder`.

    Raises
    ------
    ToolchainError
        There is no C++ compiler, or it refuses a file.
    """
    kept = folder if objects is None else pathlib.Path(objects)
    for needed in (folder, kept):
        needed.mkdir(parents=True, exist_ok=True)
    sources = sorted((*project.glob("*.cpp"), *project.glob("host/*.c")))
    included = sorted((*project.glob("*.h"), *folder.glob("*.h")))
    includes = [f"-I{path}" for path in (project, folder, headers)]
    made = []
    for source in (*sources, *stubs):
        text = "".join(file.read_text() for file in (source, *included))
        key = hashlib.sha256(text.encode()).hexdigest()[:32]
        made.append(kept / f"{source.stem}-{key}.o")
        if not made[-1].is_file():
            partial = made[-1].with_suffix(f".{os.getpid()}.o")
            run_compiler([compiler(), *FLAGS[source.suffix], *includes, "-c", "-o", partial, source])
            partial.rename(made[-1])
    program = folder / "model"
    run_compiler([compiler(), "-o", program, *made, *links])
    return program


def run_compiler(command: Sequence[str | pathlib.Path]) -> None:
    """Run the C++ compiler."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(
            "The project cannot be compiled for the host model.",
            need="a C++17 compiler",
            limit=str(error),
            remedy="install g++, or set CXX",
        ) from error
    if done.returncode:
        raise ToolchainError(
            "The compiler refuses a file of the project.",
            limit=f"{command[0]} ended with {done.returncode}",
            log=done.stderr,
        )
