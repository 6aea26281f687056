# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does to its dispatcher before it decomposes a program, in a third of the time.

`ExportedProgram.run_decompositions` looks for composite operators in some twenty namespaces, twice, and each
time through all that the dispatcher has; and it gives some five hundred operators about twenty kernels each,
by a function that makes type annotations whenever it is called.  Of a small model that takes longer than all
else.  Inside of `prepared_once` the dispatcher is looked through once, and kernels are given without more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from torch._C import DispatchKey
from torch._export import utils
from torch._ops import OperatorBase

from ..one_at_a_time import COMPILING

#: Of `torch._export.utils`: makes operators of all that the dispatcher has of composite ones.
LOOK = "_materialize_cpp_cia_ops"


@contextlib.contextmanager
def prepared_once() -> Iterator[None]:
    """Decompose one program inside: no operator is registered meanwhile.

    One thread at a time: two that replace the same functions could each put back what the other put there.
    """
    with COMPILING, contextlib.ExitStack() as stack:
        look = getattr(utils, LOOK, None)
        if look is not None:
            stack.enter_context(_replaced(utils, LOOK, _once(look)))
        stack.enter_context(_replaced(OperatorBase, "py_impl", _gives(OperatorBase.py_impl)))
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)


def _once(look: Callable[[], None]) -> Callable[[], None]:
    looked = False

    def once() -> None:
        nonlocal looked
        if not looked:
            look()
            looked = True

    return once


def _gives(whole: Callable[..., Any]) -> Callable[..., Any]:
    """`OperatorBase.py_impl`: a new kernel for a key of the dispatcher at once, anything else by PyTorch."""

    def py_impl(self: Any, key: Any) -> Callable[[Any], Any]:
        if not isinstance(key, DispatchKey) or key == DispatchKey.Python or key in self.py_kernels:
            return whole(self, key)

        def give(kernel: Any) -> Any:
            self.py_kernels[key] = kernel
            self._dispatch_cache.clear()
            return kernel

        return give

    return py_impl
