# SPDX-License-Identifier: Apache-2.0
"""Files of one JSON value a line, to which lines are added for good: a crash costs at most the last one."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any, BinaryIO

from ..errors import DatabaseError
from ..whole_files import replacing, writing


def read_lines(path: pathlib.Path) -> list[Any]:
    """The values of a file; none where there is no file. A last line that a crash cut short is left out.

    Raises
    ------
    DatabaseError
        The file cannot be read, or another line than the last is no JSON.
    """
    try:
        lines = path.read_bytes().split(b"\n") if path.is_file() else []
    except OSError as error:
        raise DatabaseError(
            f"{path} cannot be read.", limit=str(error), remedy="allow this user to read the database"
        ) from error
    values = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, UnicodeDecodeError) as error:
            if number == len(lines):
                break  # without its newline: it was being written
            raise DatabaseError(
                f"Line {number} of {path} is damaged.",
                need="one JSON value a line",
                limit=str(error),
                remedy="restore the file, or delete the line",
            ) from error
    return values


def add_lines(path: pathlib.Path, values: Iterable[Any]) -> None:
    """Add values to a file; when this returns they are on the disk.

    What a crash left of a last line is cut off first. Processes that add to one file take turns.

    Raises
    ------
    DatabaseError
        The file cannot be written.
    """
    text = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)
    with writing(path, DatabaseError), path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _end_last_line(file)
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _end_last_line(file: BinaryIO) -> None:
    """Let a file end with a newline: complete its last line, or drop it where it is cut short."""
    file.seek(0)
    text = file.read()
    end = text.rfind(b"\n") + 1
    if end == len(text):
        return
    try:
        json.loads(text[end:])
    except ValueError:
        file.truncate(end)
        file.seek(end)
    else:
        file.write(b"\n")


def write_lines(path: pathlib.Path, values: Iterable[Any]) -> None:
    """Replace a file by values, all or nothing.

    Raises
    ------
    DatabaseError
        The file cannot be written.
    """
    with replacing(path, DatabaseError) as partial:
        add_lines(partial, values)
