# SPDX-License-Identifier: Apache-2.0
"""The database that comes with the package: schedules of the demo models, by the name ``shipped``.

It was made by ``uir tune`` and ``uir db export`` (docs/tuning.md says how) and is for reading: what else is
found goes into a folder of one's own.
"""

from __future__ import annotations

import os
import pathlib

from ..errors import DatabaseError

#: What stands for the folder wherever a database is named; a folder of that name is ``./shipped``.
SHIPPED = "shipped"
FOLDER = pathlib.Path(__file__).parent / "shipped_schedules"


def folder_of(name: str | os.PathLike[str]) -> pathlib.Path:
    """The folder of a database: the package's own for `SHIPPED`, else the path that was given."""
    return FOLDER if os.fspath(name) == SHIPPED else pathlib.Path(name)


def refuse_shipped(folder: pathlib.Path) -> None:
    """Keep the package's own database as it is.

    Raises
    ------
    DatabaseError
        The folder is that database.
    """
    if folder == FOLDER:
        raise DatabaseError(
            "The database that comes with the package is for reading.",
            need="a folder of your own",
            remedy="name another folder; `uir db merge FOLDER shipped` puts what is shipped into it",
        )
