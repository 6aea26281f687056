# SPDX-License-Identifier: Apache-2.0
"""Run iGraphs as programs run their kernels: arguments are checked together, LLVM optimises as for a model.

Users who call `run_igraph` themselves get a message of its own for each argument that does not fit, of a
function that LLVM optimises all the way: that takes longer than most kernels of the tests run
(`tests/runtime/test_kernel.py` has it).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.igraph import IGraph
from uir_tvm.runtime import kernel

__all__ = ["build_igraph", "run_igraph"]


def build_igraph(graph: IGraph, target: Any, **how: Any) -> Any:
    """As `uir_tvm.runtime.kernel.build_igraph`."""
    with called_by_a_program():
        return kernel.build_igraph(graph, target, **how)


def run_igraph(graph: IGraph, target: Any, *arrays: Any, **how: Any) -> list[np.ndarray]:
    """As `uir_tvm.runtime.kernel.run_igraph`."""
    with called_by_a_program():
        return kernel.run_igraph(graph, target, *arrays, **how)
