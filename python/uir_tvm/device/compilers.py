# SPDX-License-Identifier: Apache-2.0
"""What turns a device's source text into code when a kernel first needs it, or when a model is saved."""

from __future__ import annotations

import tvm_ffi

from .kind import DEVICES

#: Name under which the native code finds `compile_source`.
FUNCTION = "uir.device.compile"


def compile_source(source: str, arch: str) -> bytes:
    """The code of a source text for an architecture.

    Raises
    ------
    ToolchainError
        There is no compiler for it, or it refuses the text.
    """
    for kind in DEVICES.values():
        for prefix, compiler in kind.compilers.items():
            if arch.startswith(prefix):
                return compiler(str(source), str(arch))
    raise AssertionError(f"no target prints source for {arch}")


def register() -> None:
    """Let the native code find the compilers."""
    tvm_ffi.register_global_func(FUNCTION, compile_source, override=True)
