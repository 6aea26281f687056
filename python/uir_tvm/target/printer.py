# SPDX-License-Identifier: Apache-2.0
"""Calls the printers, which are C++: one global function per target that prints source text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm_ffi

from ..errors import CodegenError
from ..igraph.nodes import IGraph


def print_source(function: str, graphs: Sequence[IGraph], name: str) -> Mapping[str, Any]:
    """The text of some graphs that run one after the other, and how it is launched.

    Parameters
    ----------
    function : str
        The printer's global function, ``uir.codegen.TARGET``.
    graphs : sequence of IGraph
        Phases: kernels of one text, launched in this order.
    name : str
        What names of kernels start with.

    Returns
    -------
    mapping
        ``source`` (str), ``kernels``, ``workspace`` and ``report``; see `uir_tvm.device.device_kernel`.

    Raises
    ------
    CodegenError
        The printer refuses the graph.
    """
    printer = tvm_ffi.get_global_func(function)
    try:
        return printer(list(graphs), name)
    except CodegenError as error:
        if not error.where:
            error.where = f"`{name}`"
            error.args = (error.render(),)
        raise
