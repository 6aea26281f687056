# SPDX-License-Identifier: Apache-2.0
"""What the printer may print of Ascend C: its table (src/codegen/ascend/api_table.cc) as data and as text.

The printer prints nothing that has no row there; each row says where the vendor's public headers and
documentation have it for dav-2201 (Ascend 910B).
"""

from __future__ import annotations

import attrs
import tvm

__all__ = ["Api", "markdown", "table"]

_HEAD = """\
# Ascend C that the printer prints

Every vendor function, type and enumeration that `uir-ascend` may print, with the element types that it takes
on dav-2201 (Ascend 910B). The printer reads this table (`src/codegen/ascend/api_table.cc`) and can print
nothing else: a dtype that a row lacks is a `CodegenError`. `T`, `U` are element types, `LT` and `GT` local
and global tensors; a range behind a parameter's type is what an integer literal is held to; modes stand
behind the types they go with.

This page is made by `python -m uir_tvm.target.ascend.apis`.
"""


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
        Further rules; header and page where the row was checked.
    """

    name: str
    form: str
    params: str
    types: str
    templates: str
    pipe: str
    limits: str
    source: str


def table() -> list[Api]:
    """All rows, in the order of the table."""
    rows = tvm.get_global_func("uir.codegen.ascend.apis")()
    return [Api(**{str(key): str(value) for key, value in row.items()}) for row in rows]


def markdown() -> str:
    """The table as a page of documentation."""
    head = "| name | form | parameters | types | pipe | rules | checked in |"
    lines = [_HEAD, head, "|---|---|---|---|---|---|---|"]
    for row in table():
        cells = (
            f"`{row.name}{row.templates}`",
            row.form,
            f"`{row.params}`" if row.params else "",
            row.types,
            row.pipe,
            row.limits,
            row.source,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
