# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a saved executable: each cause by its own name, with what helps against it."""

from __future__ import annotations

import errno
import os
import platform
import re
import struct
import zipfile

import attrs

from ..errors import ArtifactError, last_line
from .artifact_member import Source

#: What helps where the file itself is at fault.
AGAIN = "compile the model again: uir compile MODEL -o FILE"
#: How a zip begins, and where a shared library of Linux says for which machine it is.
ZIP, ELF, MACHINE_AT = b"PK\x03\x04", b"\x7fELF", 18
#: Of its header of 64 bytes: where the table of sections begins, size and number of its rows.
HEADER, SECTIONS_AT, ROWS_AT = 64, 40, 58
#: The number there -> the machine as `platform.machine` calls it.
MACHINES = {3: "i686", 40: "armv7l", 62: "x86_64", 183: "aarch64", 243: "riscv64", 258: "loongarch64"}
#: Other names of the same machine.
SAME = {"AMD64": "x86_64", "arm64": "aarch64"}


@attrs.frozen
class Cause:
    """One cause of a failure.

    Parameters
    ----------
    said : Pattern
        What the loader says of it; the first group is what is missing or wrong.
    what : str
        What is the matter with the file, after its path.
    need : str
        What would have to be; ``{}`` is the first group.
    remedy : str
    """

    said: re.Pattern[str]
    what: str
    need: str
    remedy: str


#: What the dynamic linker and TVM's loader say, most telling first.
CAUSES = (
    Cause(
        re.compile(r"(\S+): cannot open shared object file"),
        "needs a library that this machine has not",
        "{}",
        "install it, or put its folder into LD_LIBRARY_PATH",
    ),
    Cause(
        re.compile(r"version [`'](\S+)' not found"),
        "was linked against newer system libraries",
        "{}",
        "compile the model on this machine, or on one with an older system",
    ),
    Cause(
        re.compile(r"undefined symbol: (\S+)"),
        "needs a function that no library of this process has",
        "{}",
        "install what the model was compiled with, or compile the model again on this machine",
    ),
    Cause(
        re.compile(r"load_from_bytes\.(\w+)"),
        "has code of a kind that this TVM does not load",
        "TVM's runtime for {}",
        "install a TVM that was built with it, or compile the model for a target of this machine",
    ),
    Cause(
        re.compile(r"(Cannot allocate memory|bad_alloc)"),
        "does not fit into this machine's memory",
        "more free memory ({})",
        "end other programs, or raise the limit (ulimit -v)",
    ),
    Cause(
        re.compile(r"failed to map segment.*?(Operation not permitted|Permission denied)?$"),
        "cannot be loaded from the folder for temporary files",
        "a folder from which code may run",
        "set TMPDIR to a folder that is not mounted noexec",
    ),
)


def no_file(path: Source) -> ArtifactError:
    """There is nothing of that name, or a folder."""
    if path.is_dir():
        return ArtifactError(f"{path} is a folder.", need="a file of `uir compile`", remedy="name the file")
    return ArtifactError(
        f"There is no file {path}.", remedy="compile the model first: uir compile MODEL -o FILE"
    )


def unreadable(path: Source, error: Exception) -> ArtifactError:
    """Of an error while the file was read as a zip."""
    if isinstance(error, MemoryError):
        return _out_of_memory(path, error)
    if isinstance(error, OSError) and error.errno is not None:
        return ArtifactError(
            f"{path} cannot be read.", limit=last_line(error), remedy="check its permissions and the disk"
        )
    if isinstance(error, zipfile.BadZipFile | EOFError) and (why := _no_zip(path)) is not None:
        return why
    return damaged(path, error)


def _no_zip(path: Source) -> ArtifactError | None:
    """Where the file as a whole is none: empty, cut off, or of another kind."""
    with path.open("rb") as file:
        head = file.read(len(ZIP))
        length = file.seek(0, os.SEEK_END)
        if zipfile.is_zipfile(file):
            return None
    if not head:
        return ArtifactError(f"{path} is empty.", need="a file of `uir compile`", remedy=AGAIN)
    if ZIP.startswith(head):
        return ArtifactError(
            f"{path} is truncated.",
            need="the end of the file, with its table of contents",
            limit=f"{length} bytes are there",
            remedy="copy it again; or " + AGAIN,
        )
    return another_kind(path, "it is no zip")


def another_kind(path: Source, why: str) -> ArtifactError:
    """It is no file of ours."""
    return ArtifactError(
        f"{path} is no executable of uir_tvm.", need="a file of `uir compile`", limit=why, remedy=AGAIN
    )


def damaged(path: Source, error: BaseException | str) -> ArtifactError:
    """It is ours, and parts of it are not as they were written."""
    return ArtifactError(
        f"{path} is damaged.",
        need="every part as it was written",
        limit=error if isinstance(error, str) else last_line(error),
        remedy="copy it again; or " + AGAIN,
    )


def unloadable(path: Source, error: Exception) -> ArtifactError:
    """Of an error while its library, which is as it was written, was loaded."""
    text = str(error)
    if isinstance(error, MemoryError):
        return _out_of_memory(path, error)
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
        return ArtifactError(
            f"{path} cannot be unpacked.",
            need=f"room in the folder for temporary files ({error.strerror})",
            remedy="free some, or set TMPDIR to another folder",
        )
    for cause in CAUSES:
        if (found := cause.said.search(text)) is not None:
            return ArtifactError(
                f"{path} {cause.what}.",
                need=cause.need.format(found.group(1)),
                limit=last_line(error),
                remedy=cause.remedy,
            )
    return ArtifactError(
        f"The code of {path} does not load.",
        need="what the model was compiled with",
        limit=last_line(error),
        remedy="compile the model again on this machine; report it if that does not help",
    )


def check_library(path: Source, library: bytes) -> None:
    """Refuse code of another kind of machine, or half of it, which the dynamic linker would crash on.

    Raises
    ------
    ArtifactError
        It is for another machine, or no whole shared library.
    """
    if platform.system() != "Linux":
        return
    if not library.startswith(ELF) or len(library) < HEADER:
        raise damaged(path, "its code is no shared library")
    order = "<" if library[5] == 1 else ">"
    (number,) = struct.unpack_from(order + "H", library, MACHINE_AT)
    ours = SAME.get(platform.machine(), platform.machine())
    theirs = MACHINES.get(number, f"machine {number}")
    if ours in MACHINES.values() and theirs != ours:
        raise ArtifactError(
            f"{path} was compiled for another kind of machine.",
            need=theirs,
            limit=f"this is {ours}",
            remedy="compile the model here",
        )
    # sections stand at the end of what linkers write
    (sections,) = struct.unpack_from(order + "Q", library, SECTIONS_AT)
    size, rows = struct.unpack_from(order + "HH", library, ROWS_AT)
    if library[4] == 2 and sections + size * rows > len(library):
        raise damaged(path, f"its code is cut off after {len(library)} bytes")


def _out_of_memory(path: Source, error: Exception) -> ArtifactError:
    return ArtifactError(
        f"{path} does not fit into this machine's memory.",
        need="more free memory",
        limit=last_line(error),
        remedy="end other programs, or raise the limit (ulimit -v)",
    )
