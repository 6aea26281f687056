# SPDX-License-Identifier: Apache-2.0
"""What links the code of a model: this machine's compiler, or one for the machine that the code is for."""

from __future__ import annotations

import shutil

import tvm

from ..errors import ArtifactError

#: Names of compilers that link for a triple, as distributions call them.
COMPILERS = ("{}-g++", "{}-gcc")


def linker_for(host: tvm.target.Target) -> str | None:
    """The compiler that links code for another machine; None for code of this one.

    Raises
    ------
    ArtifactError
        There is none for that machine.
    """
    triple = str(host.attrs.get("mtriple", ""))
    if not triple or triple.split("-")[0] == tvm.target.codegen.llvm_get_system_triple().split("-")[0]:
        return None
    names = [name.format(triple) for name in COMPILERS]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise ArtifactError(
            "The executable cannot be linked.",
            need=f"a compiler for {triple}: " + " or ".join(names),
            limit="none is in PATH",
            remedy=f"install one (Debian: g++-{triple.replace('_', '-')}), or compile on such a machine",
        )
    return found
