# SPDX-License-Identifier: Apache-2.0
"""Unified IR on Apache TVM: one instruction-level graph IR, every accelerator.

Importing the package alone checks that TVM and tvm-ffi fit, and loads neither. The first import of a module
that is built on them does (`_LoadFirst`), before that module begins.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from typing import Any

from . import _native

__version__ = "0.1.0"

#: Modules that need neither TVM nor the native library: what the command reads before it knows what to do.
_LIGHT = ("_native", "address", "cli", "errors", "options", "time_text", "toolkits")


class _LoadFirst(importlib.abc.MetaPathFinder):
    """Loads TVM and the native library when a module of this package is to be imported that needs them.

    It finds no module.  It stands before the finders because TVM, while it is imported, imports most of this
    package (`autoload`): no module of it may be half imported by then.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        package, _, module = fullname.partition(".")
        if package == __name__ and module and not module.startswith(_LIGHT):
            _native.load()
            if self in sys.meta_path:
                sys.meta_path.remove(self)


_native.check_versions()
sys.meta_path.insert(0, _LoadFirst())

#: Public name -> module that defines it (imported when first used).
_LAZY = {"compile": ".api", "load": ".runtime", "Executable": ".runtime", "CompileOptions": ".options"}

__all__ = ["CompileOptions", "Executable", "__version__", "compile", "load"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
