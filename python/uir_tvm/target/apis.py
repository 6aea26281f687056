# SPDX-License-Identifier: Apache-2.0
"""Tables of vendor functions (src/codegen/api.h) as data and as pages of documentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    evidence : str
        What shows that it exists: ``header``, ``public kernel``, ``document``; empty where the table does not
        tell them apart.
    toolkits : str
        Versions of the vendor's toolkit that have it, separated by blanks; empty: all that the table is for.
    spellings : str
        Other names that it has in some versions, ``version:name``, separated by blanks; where parameters
        stand in another order too, their names in that order follow in parentheses.
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
    evidence: str = ""
    toolkits: str = ""
    spellings: str = ""

    def spelled(self) -> dict[str, str]:
        """Version -> what is printed in place of the name, and perhaps the order of parameters."""
        return dict(spelling.split(":", 1) for spelling in self.spellings.split())


def rows(function: str) -> list[Api]:
    """All rows of the table that a global function gives, in its order."""
    given = tvm.get_global_func(function)()
    return [Api(**{str(key): str(value) for key, value in row.items()}) for row in given]


def page(head: str, table: Sequence[Api]) -> str:
    """A table as a page of documentation; some columns are shown only where a row has them."""
    shown = [
        (name, cell)
        for name, cell, optional in _COLUMNS
        if not optional or any(getattr(row, optional) for row in table)
    ]
    columns = [name for name, _ in shown]
    lines = [head, "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in table:
        lines.append("| " + " | ".join(cell(row).replace("|", "\\|") for _, cell in shown) + " |")
    return "\n".join(lines) + "\n"


def _toolkits(row: Api) -> str:
    """Versions that have a row, with the names that some give it."""
    names = (f"`{name.replace(',', ', ')}` in {version}" for version, name in row.spelled().items())
    return "; ".join([row.toolkits or "all", *names])


#: Name of a column, the cell of a row, and the field without which no table shows it.
_COLUMNS: tuple[tuple[str, Callable[[Api], str], str], ...] = (
    ("name", lambda row: f"`{row.name}{row.templates}`", ""),
    ("form", lambda row: row.form, ""),
    ("parameters", lambda row: f"`{row.params}`" if row.params else "", ""),
    ("types", lambda row: row.types, ""),
    ("pipe", lambda row: row.pipe, ""),
    ("architectures", lambda row: row.archs or "all", "archs"),
    ("toolkits", _toolkits, "toolkits"),
    ("rules", lambda row: row.limits, ""),
    ("evidence", lambda row: row.evidence, "evidence"),
    ("checked in", lambda row: row.source, ""),
)
