# SPDX-License-Identifier: Apache-2.0
"""Files that are named for kernels, and those of dumps: written, or refused."""

from __future__ import annotations

import hashlib
import pathlib
import re

from .errors import ArtifactError

#: Characters of a kernel's name that its files keep: file systems allow 255 with the suffix.
STEM_LENGTH = 120


def write_dump(folder: pathlib.Path, name: str, suffix: str, text: str) -> pathlib.Path:
    """Write one dump; returns its path.

    Raises
    ------
    ArtifactError
        The folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{file_stem(name)}{suffix}"
        path.write_text(text)
    except OSError as error:
        raise ArtifactError(
            f"The dump folder {folder} cannot be written.", need=str(error), remedy="name another folder"
        ) from error
    return path


def file_name(name: str) -> str:
    """A file's name of which all before the last dot may be any text: legal, and no path."""
    stem, dot, suffix = name.rpartition(".")
    return f"{file_stem(stem)}{dot}{suffix}" if dot and suffix.isalnum() else file_stem(name)


def file_stem(name: str) -> str:
    """A kernel's name as a file's: legal everywhere, short enough, and different for different names."""
    legal = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    if name and legal == name and len(name) <= STEM_LENGTH and not name.startswith((".", "-")):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{legal.lstrip('.-')[:STEM_LENGTH] or 'kernel'}-{digest}"
