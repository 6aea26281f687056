# SPDX-License-Identifier: Apache-2.0
"""Python code of PyTorch's graphs is made when a graph is called, which few of them are.

Whoever changes a `torch.fx.GraphModule` makes Python code of its graph and compiles it.  `run_decompositions`
does so some fourteen times, with graphs that are read node by node and never called: a fifth of its time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from torch.fx import GraphModule
from torch.fx.graph import _PyTreeCodeGen

from ..one_at_a_time import COMPILING

#: PyTorch's own.
_RECOMPILE = GraphModule.recompile


@contextlib.contextmanager
def late_code() -> Iterator[None]:
    """Graphs that this thread makes and changes inside have no code until they are called.

    What is kept of them needs `with_code`.  PyTorch names inputs by the code of the module that it
    decomposes: without, they are ``args_0`` and so on.
    """
    whole, owner = GraphModule.recompile, threading.get_ident()

    def recompile(self: GraphModule) -> Any:
        if threading.get_ident() != owner:
            return whole(self)
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        type(self).forward = _forward  # every graph has a class of its own
        return None

    with COMPILING:
        GraphModule.recompile = recompile  # type: ignore[method-assign]
        try:
            yield
        finally:
            GraphModule.recompile = whole  # type: ignore[method-assign]


def with_code(module: GraphModule) -> None:
    """Make the code of a graph, and of those that it calls, where there is none yet."""
    for each in module.modules():
        if isinstance(each, GraphModule) and type(each).forward is _forward:
            _RECOMPILE(each)


def _forward(self: GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Of a graph without code: makes it."""
    _RECOMPILE(self)
    return type(self).forward(self, *args, **kwargs)
