# SPDX-License-Identifier: Apache-2.0
"""The graph that the pipeline has of a scheduled function before a target's passes."""

from __future__ import annotations

from typing import Any

from uir_tvm.extract import extract
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.optimize import completed


def extracted(func: Any, hardware: HardwareModel, name: str | None = None, check: bool = True) -> IGraph:
    """What extraction makes of a function, completed, and verified where ``check`` says so."""
    return completed(extract(func, hardware, name), check=check)
