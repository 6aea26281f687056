# SPDX-License-Identifier: Apache-2.0
"""Where CUDA C++ runs: on a GPU of NVIDIA, else on the host model of one.

On a GPU the TVM target is of kind ``cuda``: memory, streams and copies are those of TVM's CUDA runtime.  On
the host model it is of kind ``ext_dev``, whose memory is the model's (src/runtime/ext_dev_api.cc).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import tvm_ffi

from ...igraph.nodes import HardwareModel
from ..place import Away, Place
from .presets import DEVICES

if TYPE_CHECKING:
    from ...device.device_kernel import DeviceKernel


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


def _toolchain() -> str:
    from . import toolchain

    return str(toolchain.find())


def _cubin(kernel: DeviceKernel) -> tuple[bytes, Mapping[str, Any]]:
    """A kernel's cubin, and how its functions are launched."""
    from . import toolchain

    cubin = toolchain.compile(kernel.source, kernel.arch, name=f"{kernel.name}.cu")
    # arguments are positions among the parameters, in the function's order, and the workspaces after them
    order = [row.name for row in kernel.params] + [row.name for row in kernel.workspace]
    launches = [
        {**launch.to_json(), "params": [order.index(name) for name in launch.params]}
        for launch in kernel.launches
    ]
    workspace = [row.nbytes for row in kernel.workspace]
    return cubin.data, {"arch": cubin.arch, "launches": launches, "workspace": workspace}


def _models() -> dict[str, Any]:
    """Which hardware model a GPU is."""
    rows = [{"name": row.name, "arch": row.arch, "sms": row.sms} for row in DEVICES.values()]
    return {"models": rows}


_AWAY = Away("gpu", "a GPU of NVIDIA: Python 3.8 and the driver", _models, _cubin, 0.0)
#: Best first.
PLACES = (
    Place("gpu", "cuda", "cuda", _gpu, absent, preset, captures=True, toolchain=_toolchain, away=_AWAY),
    Place(
        "model",
        "ext_dev",
        "ext_dev",
        _model,
        notice="uir-cuda runs on the host model of a GPU: every access is checked, and it is slow",
    ),
)
