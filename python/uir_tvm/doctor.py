# SPDX-License-Identifier: Apache-2.0
"""What is installed, found and usable on this machine."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Callable, Mapping

from . import environment, kernel_cache
from ._native import REQUIRED, library_path
from .errors import UirError
from .options import KERNEL_CACHES, VARIABLES
from .target_facts import Facts

#: Package -> what it is needed for (the pinned pair has its own check).
OPTIONAL = {
    "torch": "compiling PyTorch models",
    "onnx": "compiling ONNX models",
    "transformers": "the demo",
    "onnxruntime": "benchmarks",
}
#: Tool -> what it is needed for.
TOOLS = {
    "g++": "saving executables",
}


def checkup() -> list[dict[str, str]]:
    """Rows of check, state (ok, absent, broken) and detail."""
    rows = [_pinned(name, version) for name, version in REQUIRED.items()]
    rows.append(_guarded("native library", lambda: str(library_path())))
    rows.append(_guarded("CPU matrix library", _blas))
    rows.append(_guarded("hardware model", _host))
    rows.append(_guarded("kernel cache", _kernels))
    for checks in Facts[Mapping[str, Callable[[], str]]]("checks").values():
        rows += [_found(name, check) for name, check in checks.items()]
    rows += [_optional(name, why) for name, why in OPTIONAL.items()]
    rows += [_tool(name, why) for name, why in TOOLS.items()]
    rows += [
        {
            "check": name,
            "state": "set" if name in os.environ else "not set",
            "detail": f"{os.environ.get(name, '')}  ({why})".strip(),
        }
        for name, why in VARIABLES.items()
    ]
    return rows


def _pinned(name: str, wanted: str) -> dict[str, str]:
    found = importlib.metadata.version(name)
    state = "ok" if found == wanted else "broken"
    return {"check": name, "state": state, "detail": found if state == "ok" else f"{found}, needs {wanted}"}


def _guarded(check: str, fn: Callable[[], str]) -> dict[str, str]:
    try:
        return {"check": check, "state": "ok", "detail": fn()}
    except UirError as error:
        return {"check": check, "state": "broken", "detail": str(error)}


def _optional(name: str, why: str) -> dict[str, str]:
    try:
        return {"check": name, "state": "ok", "detail": importlib.metadata.version(name)}
    except importlib.metadata.PackageNotFoundError:
        return {"check": name, "state": "absent", "detail": f"needed for {why}"}


def _tool(name: str, why: str) -> dict[str, str]:
    path = shutil.which(name)
    return {"check": name, "state": "ok" if path else "absent", "detail": path or f"needed for {why}"}


def _found(check: str, fn: Callable[[], str]) -> dict[str, str]:
    """A row for what may be missing without anything being broken."""
    try:
        return {"check": check, "state": "ok", "detail": fn()}
    except UirError as error:
        return {"check": check, "state": "absent", "detail": str(error)}


def _blas() -> str:
    from .library import cpu

    found = cpu.available()
    return f"{found.name} {found.version}"


def _kernels() -> str:
    place = environment.text("UIR_KERNEL_CACHE", KERNEL_CACHES[0])
    if place != KERNEL_CACHES[0]:
        return place
    megabytes = environment.kernel_cache_bytes() >> 20
    return f"{kernel_cache.FOLDER.size() / 2**20:.1f} of {megabytes} MiB in {kernel_cache.FOLDER.path()}"


def _host() -> str:
    from . import hardware

    hw = hardware.get()
    vectors = f"{hw.vector_bytes * 8}-bit vectors ({hw.figures.get('mcpu', 'generic')})"
    return f"{hw.num_groups} cores, {hw.reg_bytes >> 10} KiB of memory a unit, {vectors}"
