# SPDX-License-Identifier: Apache-2.0
"""Device kernels as a runtime module (kind ``uir_device``, src/runtime/device_module.cc)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import tvm_ffi

from ..device.device_kernel import DeviceKernel
from ..device.kind import DEVICES
from .place import MODEL, Place

#: The function of `src/runtime/device_module.cc` that makes the module.
CONSTRUCTOR = "uir.runtime.device_module"


def device_module(
    kernels: Mapping[str, DeviceKernel],
    place: Place,
    binaries: Mapping[str, Mapping[str, bytes]] | None = None,
) -> tvm_ffi.Module:
    """A runtime module with a function for each kernel, which takes the kernel's tensors in order.

    Parameters
    ----------
    kernels : mapping
        Name of function -> kernel.
    place : Place
        Where it is to run: saving the module compiles what is missing for there.
    binaries : mapping, optional
        Name of function -> architecture -> code, where something is compiled already.
    """
    rows = [kernel.metadata(entry, saved(kernel, place)) for entry, kernel in kernels.items()]
    make = tvm_ffi.get_global_func(CONSTRUCTOR)
    sources = [kernel.source for kernel in kernels.values()]
    code = [dict((binaries or {}).get(entry, {})) for entry in kernels]
    return make(json.dumps({"kernels": rows}), sources, code)


def saved(kernel: DeviceKernel, place: Place) -> Sequence[str]:
    """The architectures whose code a saved module holds."""
    return [DEVICES[kernel.kind].model if place.name == MODEL else kernel.arch]
