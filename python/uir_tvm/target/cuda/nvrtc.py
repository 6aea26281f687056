# SPDX-License-Identifier: Apache-2.0
"""NVRTC by its C API: CUDA sources become cubins in this process, without a host compiler.

Prototypes: NVRTC 13.0 documentation, "Modules" (nvrtc.h); they are the same since CUDA 11.1.
"""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Sequence

#: The C library's headers that the emitted text may name; NVRTC has no C library.
VIRTUAL_HEADERS = {
    # Defines the types in the global namespace under NVRTC.
    "stdint.h": "#include <cuda/std/cstdint>\n",
    "cstdint": "#include <cuda/std/cstdint>\n",
    "stddef.h": "#include <cuda/std/cstddef>\n",
    "cstddef": "#include <cuda/std/cstddef>\n",
    # The functions of the mathematics library are known without a header.
    "math.h": "",
    "cmath": "",
}


class NvrtcError(Exception):
    """NVRTC refused a source; the message is its log."""


class Library:
    """One loaded libnvrtc."""

    def __init__(self, path: pathlib.Path) -> None:
        # The library looks for its other half by name; loaded first, it is found wherever it lies.
        for other in sorted(path.parent.glob("libnvrtc-builtins.so.*")) if path.is_absolute() else ():
            ctypes.CDLL(str(other), mode=ctypes.RTLD_GLOBAL)
        self._lib = ctypes.CDLL(str(path))
        self._lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    @staticmethod
    @functools.cache
    def load(path: pathlib.Path) -> Library:
        """The library at a path, loaded once; OSError where it cannot be."""
        return Library(path)

    def _check(self, status: int) -> None:
        if status:
            raise NvrtcError(self._lib.nvrtcGetErrorString(status).decode())

    def version(self) -> str:
        """Such as ``13.0``."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return f"{major.value}.{minor.value}"

    def compile(self, source: str, name: str, flags: Sequence[str]) -> tuple[bytes, str]:
        """The cubin and the log.

        Raises
        ------
        NvrtcError
            The source does not compile.
        """
        program = ctypes.c_void_p()
        count = len(VIRTUAL_HEADERS)
        headers = (ctypes.c_char_p * count)(*[text.encode() for text in VIRTUAL_HEADERS.values()])
        names = (ctypes.c_char_p * count)(*[header.encode() for header in VIRTUAL_HEADERS])
        self._check(
            self._lib.nvrtcCreateProgram(
                ctypes.byref(program), source.encode(), name.encode(), ctypes.c_int(count), headers, names
            )
        )
        try:
            given = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
            status = self._lib.nvrtcCompileProgram(program, ctypes.c_int(len(flags)), given)
            log = self._read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
            if status:
                raise NvrtcError(log or self._lib.nvrtcGetErrorString(status).decode())
            return self._read(program, "CUBIN"), log
        finally:
            self._lib.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._lib, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw
