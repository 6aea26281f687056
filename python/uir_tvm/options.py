# SPDX-License-Identifier: Apache-2.0
"""Options of a compilation, and the only place that reads the environment."""

from __future__ import annotations

import os
import pathlib

import attrs

#: Environment variable -> what it means (shown by ``uir doctor``).
VARIABLES = {
    "UIR_DUMP_DIR": "write what every stage made of every kernel into this folder",
    "UIR_OVERRIDE_DIR": "KERNEL.tir.json or KERNEL.igraph in this folder replaces what the stage made",
    "UIR_NUM_THREADS": "worker threads of uir-cpu (default: the CPUs this process may use)",
}


def _folder(variable: str) -> pathlib.Path | None:
    value = os.environ.get(variable, "")
    return pathlib.Path(value) if value else None


@attrs.frozen
class CompileOptions:
    """How to compile.

    Parameters
    ----------
    verify : bool
        Verify every iGraph (on by default; it costs milliseconds a kernel).
    dump_dir : Path, optional
        Where every stage is dumped; default: ``UIR_DUMP_DIR``.
    override_dir : Path, optional
        Dumps that replace what a stage makes; default: ``UIR_OVERRIDE_DIR``.
    """

    verify: bool = True
    dump_dir: pathlib.Path | None = attrs.field(factory=lambda: _folder("UIR_DUMP_DIR"))
    override_dir: pathlib.Path | None = attrs.field(factory=lambda: _folder("UIR_OVERRIDE_DIR"))


def num_threads() -> int:
    """Worker threads of uir-cpu: ``UIR_NUM_THREADS``, else the CPUs that this process may use."""
    value = os.environ.get("UIR_NUM_THREADS", "")
    if value.isdigit() and int(value) > 0:
        return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
