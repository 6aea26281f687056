# SPDX-License-Identifier: Apache-2.0
"""What became of one architecture."""

from __future__ import annotations

from typing import Any

import attrs

#: Near torch, with a typed reason not compiled, or one of what must not be.
RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
#: An exception that is no `UirError`; a process that ended by itself; one that the watchdog ended.
UNTYPED, CRASHED, TIMEOUT = "untyped", "crashed", "timeout"
#: The library itself cannot build or run the model as the table has it.
NOT_BUILT = "not built"
#: States that fail the sweep.
FAULTS = (WRONG, UNTYPED, CRASHED, TIMEOUT)


@attrs.frozen
class Outcome:
    """One row of the result.

    Parameters
    ----------
    state : str
        One of the words above.
    by : str
        Who refused: ``torch.export`` or ``uir_tvm``.
    reason : str
        The refusal, or what happened.
    error : float
        Largest difference to torch, relative to the largest value of the same output.
    parameters : int
        Numbers in the model's weights.
    kernels, without_igraph, library : int
        Distinct kernels by iGraph, those without one, and calls of libraries.
    opaque : tuple of dict
        Operators that PyTorch computes at run time: ``operator``, ``reason``, ``count``.
    fallbacks : tuple of str
        Why kernels have no iGraph.
    seconds : float
        Of `uir_tvm.compile`, its export included.
    """

    suite: str
    name: str
    family: str
    state: str
    by: str = ""
    reason: str = ""
    error: float = 0.0
    parameters: int = 0
    kernels: int = 0
    without_igraph: int = 0
    library: int = 0
    opaque: tuple[dict[str, Any], ...] = attrs.field(default=(), converter=tuple)
    fallbacks: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    seconds: float = 0.0
