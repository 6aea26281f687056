# SPDX-License-Identifier: Apache-2.0
"""What turns a device's source text into code when a kernel first needs it, or when a model is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tvm_ffi

#: Name under which the native code finds `compile_source`.
FUNCTION = "uir.device.compile"
#: Kind of hardware -> the architecture of code for its host model.
MODELS: Mapping[str, str] = {"cuda": "simt", "ascend": "ascendc", "bang": "bang-model"}


def _for_simt(source: str, _arch: str) -> bytes:
    from . import simt

    return simt.compile(source).read_bytes()


def _for_ascend_model(source: str, _arch: str) -> bytes:
    from . import ascend

    return ascend.compile(source).read_bytes()


def _for_bang_model(source: str, _arch: str) -> bytes:
    from . import bang

    return bang.compile(source).read_bytes()


def _for_gpu(source: str, arch: str) -> bytes:
    from ..target.cuda import toolchain

    return toolchain.compile(source, arch).data


def _for_npu(source: str, arch: str) -> bytes:
    from ..target.ascend import toolchain

    return toolchain.compile(source, arch)


def _for_mlu(source: str, arch: str) -> bytes:
    from ..target.bang import toolchain

    return toolchain.compile(source, arch)


#: Start of an architecture's name -> its compiler.
COMPILERS: Mapping[str, Callable[[str, str], bytes]] = {
    MODELS["cuda"]: _for_simt,
    "sm_": _for_gpu,
    MODELS["ascend"]: _for_ascend_model,
    "dav-": _for_npu,
    MODELS["bang"]: _for_bang_model,
    "372": _for_mlu,
    "592": _for_mlu,
}


def compile_source(source: str, arch: str) -> bytes:
    """The code of a source text for an architecture.

    Raises
    ------
    ToolchainError
        There is no compiler for it, or it refuses the text.
    """
    for prefix, compiler in COMPILERS.items():
        if arch.startswith(prefix):
            return compiler(str(source), str(arch))
    raise AssertionError(f"no target prints source for {arch}")


def register() -> None:
    """Let the native code find the compilers."""
    tvm_ffi.register_global_func(FUNCTION, compile_source, override=True)
