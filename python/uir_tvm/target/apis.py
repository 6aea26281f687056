# SPDX-License-Identifier: Apache-2.0
"""Tables of vendor functions (src/codegen/api.h) as data and as pages of documentation."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import tvm

__all__ = ["Api", "page", "rows"]


@attrs.frozen
class Api:
    """One row.

    Attributes
    ----------
    name, form : str
        `Add` and `count`: overloads have a form each (`count`, `repeat`, `load`, `member`, `struct`, ...).
    params : str
        `name:type`, separated by blanks; of an enumeration its values.
    types : str
        Combinations of element types, separated by `;`, each with its modes behind `:`.
    templates : str
        Template arguments as they are printed; empty where they are deduced.
    pipe : str
        The pipe that runs it, or empty.
    limits, source : str
        Further rules; where the row was checked.
    archs : str
        Architectures that have it, separated by blanks; empty: all that the table is for.
    """

    name: str
    form: str
    params: str
    types: str
    templates: str
    pipe: str
    limits: str
    source: str
    archs: str


def rows(function: str) -> list[Api]:
    """All rows of the table that a global function gives, in its order."""
    given = tvm.get_global_func(function)()
    return [Api(**{str(key): str(value) for key, value in row.items()}) for row in given]


def page(head: str, table: Sequence[Api]) -> str:
    """A table as a page of documentation; it has a column of architectures if some row names any."""
    by_arch = any(row.archs for row in table)
    columns = ["name", "form", "parameters", "types", "pipe", "rules", "checked in"]
    if by_arch:
        columns.insert(5, "architectures")
    lines = [head, "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in table:
        cells = [
            f"`{row.name}{row.templates}`",
            row.form,
            f"`{row.params}`" if row.params else "",
            row.types,
            row.pipe,
            row.limits,
            row.source,
        ]
        if by_arch:
            cells.insert(5, row.archs or "all")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"
