# SPDX-License-Identifier: Apache-2.0
"""A saved executable inside of another file."""

from __future__ import annotations

import io
import pathlib

import attrs


@attrs.frozen
class Member:
    """It is read as a file of its own is.

    Parameters
    ----------
    path : Path
        The file that it is in.
    name : str
    data : bytes
        Its content.
    """

    path: pathlib.Path
    name: str
    data: bytes = attrs.field(repr=False, eq=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"

    def is_file(self) -> bool:
        """It was there when the file around it was read."""
        return True

    def is_dir(self) -> bool:
        """It is no folder."""
        return False

    def absolute(self) -> Member:
        """The same: its content is in memory."""
        return self

    def open(self, mode: str = "rb") -> io.BytesIO:
        """Its content."""
        return io.BytesIO(self.data)


#: Where a saved executable lies.
Source = pathlib.Path | Member
