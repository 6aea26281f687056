# SPDX-License-Identifier: Apache-2.0
"""Calls of ``main`` that nothing is registered for, written as operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm
from tvm import relax

from .main_rebuilder import MainRebuilder
from .normalize import replace_main


def expand_calls(
    mod: tvm.IRModule,
    chosen: Callable[[Any], bool],
    write: Callable[[relax.BlockBuilder, Any, list[Any]], Any],
) -> tvm.IRModule:
    """Replace calls of ``main``; a module without such calls is returned as it is.

    Parameters
    ----------
    mod : tvm.IRModule
        ``main`` is one dataflow block.
    chosen : callable
        Of a bound expression: whether it is replaced.
    write : callable
        (builder, call, its operands in the new function) -> what stands for the call.  Operands are the
        arguments of a ``call_pure_packed`` between its function and its text.
    """
    main = mod["main"]
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    if not any(chosen(binding.value) for binding in bindings):
        return mod
    return replace_main(mod, _Expander(main, chosen, write).rebuilt())


class _Expander(MainRebuilder):
    def __init__(self, main: relax.Function, chosen: Callable[..., bool], write: Callable[..., Any]) -> None:
        super().__init__(main)
        self.chosen, self.write = chosen, write

    def replacement(self, binding: relax.Binding) -> Any:
        """The operators of a call."""
        call = binding.value
        if not self.chosen(call):
            return None
        return self.write(self.builder, call, [self.value(arg) for arg in call.args[1:-1]])
