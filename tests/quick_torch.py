# SPDX-License-Identifier: Apache-2.0
"""A quicker `ExportedProgram.run_decompositions`, for the hundreds of programs that tests import.

PyTorch looks each time through the dispatcher's thousand composite operators, twice for each of some twenty
namespaces.  Nothing is registered in between: once a call is enough.  And for each call it registers some ten
thousand kernels by a function whose annotations are made anew each time, which takes longer than all else.
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
    from torch._C import DispatchKey
    from torch._export import utils
    from torch._ops import OperatorBase
    from torch.export import ExportedProgram

    register = OperatorBase.py_impl

    @functools.wraps(register)
    def py_impl(self: OperatorBase, k: Any) -> Any:
        if type(k) is not DispatchKey or k == DispatchKey.Python:
            return register(self, k)

        def inner(fn: Any) -> Any:
            if k in self.py_kernels:
                return register(self, k)(fn)  # which refuses it
            self.py_kernels[k] = fn
            self._dispatch_cache.clear()
            return fn

        return inner

    OperatorBase.py_impl = py_impl  # type: ignore[method-assign]
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
