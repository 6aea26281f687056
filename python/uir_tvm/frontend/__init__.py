# SPDX-License-Identifier: Apache-2.0
"""Front ends: a model of another framework -> one normalised Relax module.

PyTorch and ONNX are imported when first used: neither is needed to compile Relax.
"""

from __future__ import annotations

import importlib
from typing import Any

from .. import loaded  # noqa: F401
from .normalize import normalize

_LAZY = {
    "from_torch": ".torch",
    "export_torch": ".torch",
    "weights_of": ".torch",
    "from_onnx": ".onnx",
    "from_prim_func": ".kernel",
    "from_igraph": ".kernel",
}

__all__ = [
    "export_torch",
    "from_igraph",
    "from_onnx",
    "from_prim_func",
    "from_torch",
    "normalize",
    "weights_of",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
