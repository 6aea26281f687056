# SPDX-License-Identifier: Apache-2.0
"""A quicker `ExportedProgram.run_decompositions`, for the hundreds of programs that tests import.

PyTorch looks each time through the dispatcher's thousand composite operators, twice for each of some twenty
namespaces.  Nothing is registered in between: once a call is enough.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

__all__ = ["install"]

installed = False


def install() -> None:
    """Use it in this process, if the tests have loaded PyTorch."""
    global installed
    if installed or "torch.export" not in sys.modules:
        return
    installed = True
    from torch._export import utils
    from torch.export import ExportedProgram

    whole, look = ExportedProgram.run_decompositions, utils._materialize_cpp_cia_ops
    looked = False

    def once() -> None:
        nonlocal looked
        if not looked:
            look()
            looked = True

    @functools.wraps(whole)
    def run_decompositions(self: ExportedProgram, *args: Any, **kwargs: Any) -> ExportedProgram:
        nonlocal looked
        looked = False
        utils._materialize_cpp_cia_ops = once
        try:
            return whole(self, *args, **kwargs)
        finally:
            utils._materialize_cpp_cia_ops = look

    ExportedProgram.run_decompositions = run_decompositions  # type: ignore[method-assign]
