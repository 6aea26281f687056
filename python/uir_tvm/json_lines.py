# SPDX-License-Identifier: Apache-2.0
"""Files of one JSON value a line, to which lines are added for good: a crash costs at most the last one."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any, BinaryIO

import attrs

from .errors import UirError
from .whole_files import replacing, writing


@attrs.frozen
class JsonLines:
    """Such a file.

    Parameters
    ----------
    path : Path
        It need not exist yet; its folder must.
    kind : type of UirError
        What is raised where it cannot be read or written, or is damaged.
    """

    path: pathlib.Path
    kind: type[UirError]

    def read(self) -> list[Any]:
        """The values; none where there is no file. A last line that a crash cut short is left out.

        Raises
        ------
        UirError
            The file cannot be read, or another line than the last is no JSON.
        """
        try:
            lines = self.path.read_bytes().split(b"\n") if self.path.is_file() else []
        except OSError as error:
            raise self.kind(
                f"{self.path} cannot be read.", limit=str(error), remedy="allow this user to read it"
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
                raise self.kind(
                    f"Line {number} of {self.path} is damaged.",
                    need="one JSON value a line",
                    limit=str(error),
                    remedy="restore the file, or delete the line",
                ) from error
        return values

    def add(self, values: Iterable[Any]) -> None:
        """Add values; when this returns they are on the disk.

        What a crash left of a last line is cut off first. Processes that add to one file take turns.

        Raises
        ------
        UirError
            The file cannot be written.
        """
        text = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values)
        with writing(self.path, self.kind), self.path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _end_last_line(file)
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def replace(self, values: Iterable[Any]) -> None:
        """Let the file have these values alone, all or nothing.

        Raises
        ------
        UirError
            The file cannot be written.
        """
        with replacing(self.path, self.kind) as partial:
            JsonLines(partial, self.kind).add(values)


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
