# SPDX-License-Identifier: Apache-2.0
"""Front ends: a model of another framework -> one normalised Relax module.

PyTorch, ONNX and Relay's grammar are imported when first used: none is needed to compile Relax, nor installed
with the package by itself.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ..errors import MissingPackageError
from .flat_module import flat_module
from .named_state import named_state
from .normalize import normalize

_LAZY = {
    "from_torch": ".torch",
    "export_torch": ".torch",
    "exported_program": ".torch",
    "weights_of": ".torch",
    "from_onnx": ".onnx",
    "run_onnx": ".onnx",
    "from_relay": ".relay",
    "from_prim_func": ".from_kernel",
    "from_igraph": ".from_kernel",
}

__all__ = [
    "export_torch",
    "exported_program",
    "flat_module",
    "from_igraph",
    "from_onnx",
    "from_prim_func",
    "from_relay",
    "from_torch",
    "named_state",
    "normalize",
    "run_onnx",
    "weights_of",
]


#: Module -> the framework that it imports, and what of the package's extras brings it.
_FRAMEWORKS = {".torch": ("PyTorch", "torch"), ".onnx": ("ONNX", "onnx"), ".relay": ("Relay", "relay")}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(_imported(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _imported(module: str) -> ModuleType:
    """A module of this package.

    Raises
    ------
    MissingPackageError
        Its framework cannot be imported.
    """
    try:
        return importlib.import_module(module, __name__)
    except ImportError as error:
        absent = (error.name or "").partition(".")[0]
        if module not in _FRAMEWORKS or absent in ("uir_tvm", "tvm", "tvm_ffi"):
            raise
        framework, extra = _FRAMEWORKS[module]
        installed = isinstance(error, ModuleNotFoundError) and absent == error.name
        raise MissingPackageError(
            f"{framework} models need the package {absent or extra}, which "
            + ("is not installed." if installed else "does not fit."),
            limit=str(error),
            remedy=f"pip install 'uir_tvm[{extra}]'",
        ) from error
