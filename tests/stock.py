# SPDX-License-Identifier: Apache-2.0
"""What TVM itself makes of a module, for references: each runs a few small tensors once.

LLVM then takes most of the time, for optimising what soon ends and for the many checks of arguments that a
test gives rightly.  It is asked for no optimisation, and arguments are checked as a program's are.
"""

from __future__ import annotations

from typing import Any

import tvm
from tvm import tirx
from uir_tvm.argument_checks import called_by_a_program

__all__ = ["stock"]


def stock(made: tvm.IRModule | tirx.PrimFunc, **options: Any) -> Any:
    """A module compiled by TVM alone; a function becomes its ``main``.

    Parameters
    ----------
    options
        Of `tvm.compile`.
    """
    if isinstance(made, tirx.PrimFunc):
        made = tvm.IRModule({"main": made.with_attr("global_symbol", "main")})
    with called_by_a_program():
        return tvm.compile(made, target=tvm.target.Target({"kind": "llvm", "opt-level": 0}), **options)
