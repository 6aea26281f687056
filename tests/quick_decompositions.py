# SPDX-License-Identifier: Apache-2.0
"""What PyTorch sets up before it takes a program's operators apart, in a fifth of the time.

`ExportedProgram.run_decompositions` gives each of some five hundred operators twenty-two kernels, one by one,
twice for each program, and takes them away again: of a small model that takes longer than all else.  Here an
operator is given all its kernels at once, the same ones.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["install", "overriding"]

#: The module of PyTorch, and the function in it that is replaced.
MODULE, FUNCTION = "torch.export.exported_program", "_override_composite_implicit_decomp"


def _whole(mode: Any, _operator: Any, *args: Any, original: Callable[..., Any], **kwargs: Any) -> Any:
    """An operator on fake tensors, as its own composite kernel has it."""
    with mode:
        return original(*args, **kwargs)


@contextlib.contextmanager
def overriding(given: Mapping[Any, Callable[..., Any]]) -> Iterator[None]:
    """Inside, composite operators are taken apart by the functions that are given for them."""
    import torch

    own = sys.modules[MODULE]
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    # a dict made with the keys of a dict takes over their hashes, which are slow to ask for
    autograd = dict.fromkeys(own._AUTOGRAD_ALIAS_BACKEND_KEYS_TO_OVERRIDE)
    backends = dict.fromkeys(own._BACKEND_KEYS_TO_OVERRIDE)
    saved: list[tuple[Any, dict[Any, Any]]] = []
    try:
        for operator, function in given.items():
            kernels = operator.py_kernels
            original = own._get_decomp_for_cia(operator)
            without = own.autograd_not_implemented(operator, deferred_error=True)
            made: dict[Any, Any] = dict.fromkeys(autograd, without)
            made.update(dict.fromkeys(backends, original))
            made.update(kernels)
            made[composite] = function
            saved.append((operator, kernels.copy()))
            kernels.clear()
            kernels.update(made)
            operator._dispatch_cache.clear()
            if not own._is_op_registered_to_fake_rule(operator):
                rule = functools.partial(_whole, original=original)
                own.register_op_impl(operator)(rule)
        yield
    finally:
        for operator, before in saved:
            operator.py_kernels.clear()
            operator.py_kernels.update(before)
            operator._dispatch_cache.clear()
            own._deregister_op_impl(operator)


def install() -> None:
    """Use it in this process, where PyTorch's module has been imported and has that function."""
    module = sys.modules.get(MODULE)
    if module is not None and hasattr(module, FUNCTION):
        setattr(module, FUNCTION, overriding)
