# SPDX-License-Identifier: Apache-2.0
"""What the printer may print of BANG C: its table (src/codegen/bang/api_table*.cc) as data and as text.

The printer prints nothing that has no row there; each row says where the vendor's public header or kernels
have it, and which architectures do.
"""

from __future__ import annotations

from ..apis import Api, page, rows

__all__ = ["Api", "markdown", "table"]

_HEAD = """\
# BANG C that the printer prints

Every vendor function, type, enumeration and built-in variable that `uir-bang` may print, with the
element types that it takes, the architectures and the versions of the compiler (cncc) that have it, and
what shows that it exists: the vendor's header, a public kernel, or a document of one. The printer reads
this table (`src/codegen/bang/api_table*.cc`) and can print nothing else: a dtype, an architecture or a
version that a row lacks is a `CodegenError`, and what has no evidence has no row. `T` is an element type; a
range behind a parameter's type is what an integer literal is held to.

Rows were checked in the device header of BANG 300 (`zhourunyu/llvm-mlu`, `clang/lib/Headers`), that of
cncc 3, which knows architectures up to 3xx, and, behind `|`, in `Cambricon/mlu-ops`, whose kernels are
for CNToolkit 4.1 and later, that is cncc 4, and architectures from 592 on. Where these spell a name
differently, `uir compile --cncc 3` prints the earlier one; version 4 is the default. What the header alone
has and no version is named for is taken to be the same in cncc 4.

This page is made by `python -m uir_tvm.target.bang.apis`.
"""


def table() -> list[Api]:
    """All rows, in the order of the table."""
    return rows("uir.codegen.bang.apis")


def markdown() -> str:
    """The table as a page of documentation."""
    return page(_HEAD, table())


if __name__ == "__main__":
    print(markdown(), end="")
