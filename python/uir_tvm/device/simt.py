# SPDX-License-Identifier: Apache-2.0
"""Compile CUDA text for the host model of CUDA devices.

The text is compiled as it is, by g++, against headers that stand for the toolkit's.  The compiler's thread
sanitizer puts a call before every load and store; the model's own library answers those calls, not the
sanitizer's.
"""

from __future__ import annotations

from .text_model import TextModel, compiler, library

__all__ = ["MODEL", "compile", "compiler", "headers", "library"]

#: How CUDA text is compiled; all shared memory of a kernel is the dynamic pool ``smem``.
MODEL = TextModel(
    name="simt",
    header="cuda_runtime.h",
    prelude="uir_simt/prelude.h",
    suffix=".cu",
    # Little optimisation keeps every access, and the lines, of the text.
    flags=(
        "-std=c++17",
        "-O1",
        "-g1",
        "-fPIC",
        "-fsanitize=thread",
        "--param=tsan-instrument-func-entry-exit=0",
        # The text converts pointers between types and wraps integers; nothing may be computed more exactly.
        "-fno-strict-aliasing",
        "-fwrapv",
        "-ffp-contract=off",
        # Frames lead from a device function to the line of the kernel that calls it.
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-fno-exceptions",
        "-fvisibility=hidden",
        "-Wno-attributes",
        "-Wno-unknown-pragmas",
        "-DUIR_SIMT=1",
    ),
    language="CUDA C++",
)
compile = MODEL.compile
headers = MODEL.headers
