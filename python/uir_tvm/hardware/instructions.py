# SPDX-License-Identifier: Apache-2.0
"""Which instructions code for a processor may use, and which of them this machine lacks."""

from __future__ import annotations

from collections.abc import Iterable

import tvm

from . import host_cpu

#: LLVM's name of an extension that generated code may use -> the flag in /proc/cpuinfo.
EXTENSIONS = {
    "sse4.2": "sse4_2",
    "avx": "avx",
    "avx2": "avx2",
    "fma": "fma",
    "f16c": "f16c",
    "bmi2": "bmi2",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512fp16": "avx512_fp16",
    "avx512bf16": "avx512_bf16",
    "neon": "asimd",
    "fullfp16": "asimdhp",
    "sve": "sve",
}
#: The same of extensions that only a library of ours uses, which asks the CPU itself.
LIBRARY_EXTENSIONS = {"amx-bf16": "amx_bf16"}


def used_by(target: tvm.target.Target) -> list[str]:
    """The extensions (by LLVM's names, sorted) that code for an LLVM target may use."""
    features = tvm.target.codegen.llvm_get_cpu_features(target)
    return sorted({str(f) for f in features} & set(EXTENSIONS))


def missing(extensions: Iterable[str]) -> list[str]:
    """Those of ``extensions`` that this machine has not; none where it does not tell its flags."""
    flags = host_cpu.cpu_flags()
    return [e for e in extensions if flags and EXTENSIONS.get(e, e) not in flags]


def reached_by(extension: str, target: tvm.target.Target) -> bool:
    """Whether a library on a target's CPU has an extension: LLVM says so, or it is this CPU.

    Of `LIBRARY_EXTENSIONS` it may not know: it takes a CPU by its model for an older one that lacks what it
    does not expect there.
    """
    codegen = tvm.target.codegen
    if codegen.target_has_features(extension, target):
        return True
    here = str(target.attrs.get("mcpu", "")) == codegen.llvm_get_system_cpu() and "mattr" not in target.attrs
    return here and LIBRARY_EXTENSIONS.get(extension, extension) in host_cpu.cpu_flags()
