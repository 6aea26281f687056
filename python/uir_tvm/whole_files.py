# SPDX-License-Identifier: Apache-2.0
"""Files that appear whole or not at all, and what is said where nothing can be written."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
from collections.abc import Iterator

from .errors import UirError, last_line


@contextlib.contextmanager
def writing(path: pathlib.Path, kind: type[UirError]) -> Iterator[None]:
    """What is done inside writes a file or makes a folder.

    Raises
    ------
    UirError
        Of the kind that is given: it cannot.
    """
    try:
        yield
    except OSError as error:
        raise kind(
            f"{path} cannot be written.",
            need="a folder that this user may write, with room",
            limit=last_line(error),
            remedy="name another place",
        ) from error


def beside(path: pathlib.Path) -> pathlib.Path:
    """A name beside a file or folder, for what will take its place; nobody else has it."""
    return path.with_name(f".{path.name[:100]}.{os.getpid()}-{secrets.token_hex(4)}")


@contextlib.contextmanager
def replacing(path: pathlib.Path, kind: type[UirError]) -> Iterator[pathlib.Path]:
    """Another file beside it, which takes its place when what is done inside has written it.

    Raises
    ------
    UirError
        Of the kind that is given: it cannot be written.
    """
    partial = beside(path)
    with writing(path, kind):
        try:
            yield partial
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
