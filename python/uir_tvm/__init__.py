# SPDX-License-Identifier: Apache-2.0
"""Unified IR on Apache TVM: one instruction-level graph IR, every accelerator.

Importing the package alone checks that TVM and tvm-ffi fit, and loads neither. The first import of a module
that is built on them does (`_LoadFirst`), before that module begins.
"""

from __future__ import annotations

import importlib
import importlib.abc
import pathlib
import re
import sys
from typing import Any

from . import _native, garbage

__version__ = "0.1.0"

#: Modules that need neither TVM nor the native library: what the command reads before it knows what to do.
_LIGHT = (
    "_native",
    "cli",
    "environment",
    "errors",
    "garbage",
    "interrupt",
    "network_address",
    "options",
    "sizes",
    "target_facts",
    "time_text",
    "toolkits",
)
#: The same of targets: their records.
_RECORDS = re.compile(r"target(\.record|\.\w+(\.toolkit)?)?")


def _is_light(module: str) -> bool:
    """Whether a module of this package needs neither TVM nor the native library."""
    if not _RECORDS.fullmatch(module):
        return module.startswith(_LIGHT)
    place = pathlib.Path(__file__).parent.joinpath(*module.split("."))
    return module.endswith((".record", ".toolkit")) or place.is_dir()


class _LoadFirst(importlib.abc.MetaPathFinder):
    """Loads TVM and the native library when a module of this package is to be imported that needs them.

    It finds no module.  It stands before the finders because TVM, while it is imported, imports most of this
    package (`autoload`): no module of it may be half imported by then.
    """

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        package, _, module = fullname.partition(".")
        if package == __name__ and module and not _is_light(module):
            _native.load()
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                if module != "autoload":  # else TVM itself imports that, to call it
                    importlib.import_module(f"{__name__}.autoload").register()


_native.check_versions()
sys.meta_path.insert(0, _LoadFirst())

#: Public name -> module that defines it (imported when first used).
_LAZY = {
    "compile": ".api",
    "load": ".runtime",
    "Executable": ".runtime",
    "SpecializedExecutable": ".runtime",
    "CompileOptions": ".options",
    "InTorch": ".frontend.torch_named",
    "TorchBackend": ".dynamo",
    "precision_error": ".narrow_error",
    "supports": ".support",
}

__all__ = [
    "CompileOptions",
    "Executable",
    "InTorch",
    "SpecializedExecutable",
    "TorchBackend",
    "__version__",
    "compile",
    "load",
    "precision_error",
    "supports",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        with garbage.unsearched():
            return getattr(importlib.import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
