# SPDX-License-Identifier: Apache-2.0
"""What the printer may print of Ascend C: its table (src/codegen/ascend/api_table.cc) as data and as text.

The printer prints nothing that has no row there; each row says where the vendor's public headers and
documentation have it for dav-2201 (Ascend 910B).
"""

from __future__ import annotations

from ..apis import Api, page, rows

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


def table() -> list[Api]:
    """All rows, in the order of the table."""
    return rows("uir.codegen.ascend.apis")


def markdown() -> str:
    """The table as a page of documentation."""
    return page(_HEAD, table())


if __name__ == "__main__":
    print(markdown(), end="")
