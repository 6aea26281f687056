# SPDX-License-Identifier: Apache-2.0
"""The only place that reads the variables which are meant for users (`options.VARIABLES` lists them)."""

from __future__ import annotations

import os
import pathlib


def text(variable: str, default: str = "") -> str:
    """What a variable says; the default where it is not set, or empty."""
    return os.environ.get(variable, "") or default


def folder(variable: str) -> pathlib.Path | None:
    """The folder that a variable names, if it does."""
    value = text(variable)
    return pathlib.Path(value) if value else None


def folders(*variables: str) -> tuple[pathlib.Path, ...]:
    """The folders that some variables name, first choice first."""
    return tuple(found for found in map(folder, variables) if found is not None)


def num_threads() -> int:
    """Worker threads on the CPU: ``UIR_NUM_THREADS``, else the CPUs that this process may use."""
    value = text("UIR_NUM_THREADS")
    if value.isdigit() and int(value) > 0:
        return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_dir() -> pathlib.Path:
    """Where compiled sources are kept: ``UIR_CACHE_DIR``, else ``uir_tvm`` in the user's cache folder.

    Raises
    ------
    RuntimeError
        None is named, and the user has no home.
    """
    if (named := folder("UIR_CACHE_DIR")) is not None:
        return named
    return (folder("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "uir_tvm"


def kernel_cache_bytes() -> int:
    """What kept kernels may take on disk: ``UIR_KERNEL_CACHE_MB``, else 512 MiB."""
    return _mebibytes("UIR_KERNEL_CACHE_MB", 512)


def program_cache_bytes() -> int:
    """What the weights of programs that nobody holds may take: ``UIR_PROGRAM_CACHE_MB``, else 1024 MiB."""
    return _mebibytes("UIR_PROGRAM_CACHE_MB", 1024)


def _mebibytes(variable: str, default: int) -> int:
    value = text(variable)
    return (int(value) if value.isdigit() else default) << 20


def device() -> str:
    """Where kernels of a device run by default: ``UIR_DEVICE``, else auto."""
    return text("UIR_DEVICE", "auto")
