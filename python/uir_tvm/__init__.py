# SPDX-License-Identifier: Apache-2.0
"""Unified IR on Apache TVM: one instruction-level graph IR, every accelerator.

Importing the package alone checks that TVM and tvm-ffi fit, and loads neither: what needs them loads them
(`uir_tvm.loaded`).
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _native

__version__ = "0.1.0"

_native.check_versions()

#: Public name -> module that defines it (imported when first used).
_LAZY = {"compile": ".api", "load": ".runtime", "Executable": ".runtime", "CompileOptions": ".options"}

__all__ = ["CompileOptions", "Executable", "__version__", "compile", "load"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        _native.load()
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
