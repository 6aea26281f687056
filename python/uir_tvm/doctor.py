# SPDX-License-Identifier: Apache-2.0
"""What is installed, found and usable on this machine."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
from collections.abc import Callable

from ._native import REQUIRED, library_path
from .errors import UirError
from .options import VARIABLES

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
    "cncc": "uir-bang on a device",
}


def checkup() -> list[dict[str, str]]:
    """Rows of check, state (ok, absent, broken) and detail."""
    rows = [_pinned(name, version) for name, version in REQUIRED.items()]
    rows.append(_guarded("native library", lambda: str(library_path())))
    rows.append(_guarded("CPU matrix library", _blas))
    rows.append(_guarded("hardware model", _host))
    rows += [_gpu(), _found("CUDA compiler", _cuda_compiler), _found("CUDA host model", _cuda_model)]
    rows += [_npu(), _found("Ascend C compiler", _ascend_compiler)]
    rows.append(_found("Ascend host model", _ascend_model))
    rows += [_mlu(), _found("BANG C compiler", _bang_compiler)]
    rows.append(_found("MLU host model", _bang_model))
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


def _gpu() -> dict[str, str]:
    """The GPUs, or why there is none."""
    from .target.cuda import places

    why = places.absent()
    found = "; ".join(f"{gpu.name} ({gpu.arch}, {gpu.sms} multiprocessors)" for gpu in places.gpus())
    return {"check": "GPU", "state": "absent" if why else "ok", "detail": why or found}


def _found(check: str, fn: Callable[[], str]) -> dict[str, str]:
    """A row for what may be missing without anything being broken."""
    try:
        return {"check": check, "state": "ok", "detail": fn()}
    except UirError as error:
        return {"check": check, "state": "absent", "detail": str(error)}


def _cuda_compiler() -> str:
    from .target.cuda import toolchain

    tool = toolchain.find()
    return f"{tool} ({tool.path})"


def _cuda_model() -> str:
    from .device import simt

    return f"{simt.library()}, kernels compiled by {simt.compiler()}"


def _npu() -> dict[str, str]:
    """The Ascend NPUs, or why there is none."""
    from .target.ascend import places

    why = places.absent()
    return {"check": "Ascend NPU", "state": "absent" if why else "ok", "detail": why or str(places.preset())}


def _ascend_compiler() -> str:
    from .target.ascend import toolchain

    tool = toolchain.find()
    return f"{tool} ({tool.path})"


def _ascend_model() -> str:
    from .device import simt

    return f"{simt.library()}, kernels compiled by {simt.compiler()}"


def _mlu() -> dict[str, str]:
    """The Cambricon MLUs, or why there is none."""
    from .target.bang import places

    why = places.absent()
    state = "absent" if why else "ok"
    return {"check": "Cambricon MLU", "state": state, "detail": why or str(places.preset())}


def _bang_compiler() -> str:
    from .target.bang import toolchain

    tool = toolchain.find()
    return f"{tool} ({tool.path})"


def _bang_model() -> str:
    from .device import simt

    return f"{simt.library()}, kernels compiled by {simt.compiler()}"


def _blas() -> str:
    from .library import cpu

    found = cpu.available()
    return f"{found.name} {found.version}"


def _host() -> str:
    from . import hardware

    hw = hardware.get()
    vectors = f"{hw.vector_bytes * 8}-bit vectors ({hw.figures.get('mcpu', 'generic')})"
    return f"{hw.num_groups} cores, {hw.reg_bytes >> 10} KiB of memory a unit, {vectors}"
