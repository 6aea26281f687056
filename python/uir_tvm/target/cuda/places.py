# SPDX-License-Identifier: Apache-2.0
"""Where CUDA C++ runs: on a GPU of NVIDIA, else on the host model of one.

On a GPU the TVM target is of kind ``cuda``: memory, streams and copies are those of TVM's CUDA runtime.  On
the host model it is of kind ``ext_dev``, whose memory is the model's (src/runtime/ext_dev_api.cc).
"""

from __future__ import annotations

import functools
from typing import Any

import attrs
import tvm_ffi

from ...hardware.presets.cuda import DEVICES
from ...igraph.nodes import HardwareModel
from ..place import Place


@attrs.frozen
class Gpu:
    """A GPU of this machine: its name, its architecture without suffix, its multiprocessors."""

    name: str
    arch: str
    sms: int


@functools.cache
def gpus() -> tuple[Gpu, ...]:
    """The GPUs of this machine, in the driver's order."""
    rows = tvm_ffi.get_global_func("uir.runtime.cuda.describe")()["devices"]
    return tuple(Gpu(str(row["name"]), str(row["arch"]), int(row["sms"])) for row in rows)


@functools.cache
def absent() -> str:
    """Why kernels cannot run on a GPU here; empty where they can."""
    if tvm_ffi.get_global_func("device_api.cuda", allow_missing=True) is None:
        # asked first: it costs nothing where there is no driver
        return "TVM's CUDA runtime is not loaded; it needs libcuda.so.1 (the driver) and libcudart.so.13"
    return str(tvm_ffi.get_global_func("uir.runtime.cuda.describe")()["error"])


def preset() -> str | None:
    """The hardware model of the first GPU: of its architecture, and of its name or size if there is one."""
    if absent():
        return None
    gpu = gpus()[0]
    alike = [row for row in DEVICES.values() if row.arch.rstrip("af") == gpu.arch]
    named = [row for row in alike if row.name in gpu.name.lower()]
    sized = [row for row in alike if row.sms == gpu.sms]
    return next((row.name for row in [*named, *sized, *alike]), None)


def _gpu(hw: HardwareModel) -> dict[str, Any]:
    arch = str(hw.figures["arch"])
    return {"keys": ["uir", "cuda", "gpu"], "arch": arch, "model": str(hw.name)}


def _model(hw: HardwareModel) -> dict[str, Any]:
    return {"keys": ["uir", "cuda"], "model": str(hw.name)}


#: Best first.
PLACES = (
    Place("gpu", "cuda", "cuda", _gpu, absent, preset),
    Place(
        "model",
        "ext_dev",
        "ext_dev",
        _model,
        notice="uir-cuda runs on the host model of a GPU: every access is checked, and it is slow",
    ),
)
