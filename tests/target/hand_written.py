# SPDX-License-Identifier: Apache-2.0
"""A kernel in CUDA C++ written by hand, so that what runs kernels is tested apart from what prints them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tvm
import tvm_ffi
from uir_tvm.device.device_kernel import DeviceKernel, KernelParameter, Launch, Workspace
from uir_tvm.target import registry
from uir_tvm.target.device_module import device_module

#: y = 2 x + 1 in two kernels, by way of a workspace.
SOURCE = """
extern "C" __global__ void __launch_bounds__(64) twice(const float* x, float* half) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  half[i] = 2.0f * x[i];
}

extern "C" __global__ void __launch_bounds__(64) plus_one(const float* half, float* y) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  y[i] = half[i] + 1.0f;
}
"""
SIZE = 128
LAUNCHES = (
    Launch("twice", 2, 64, 0, False, ("x", "half")),
    Launch("plus_one", 2, 64, 0, False, ("half", "y")),
)


def kernel(source: str = SOURCE, launches: Sequence[Launch] = LAUNCHES) -> DeviceKernel:
    """The product that a printer would make of it."""
    params = (KernelParameter("x", "fp32", SIZE, "in"), KernelParameter("y", "fp32", SIZE, "out"))
    workspace = (Workspace("half", 4 * SIZE),)
    return DeviceKernel("affine", source, tuple(launches), params, workspace, "h200", "sm_90a", "cuda")


def module(product: DeviceKernel | None = None, place: str = "model") -> tvm_ffi.Module:
    """A runtime module with its function ``affine``."""
    return device_module({"affine": product or kernel()}, registry.get("uir-cuda").place(place))


def tensors(device: tvm.runtime.Device | None = None) -> tuple[tvm.runtime.Tensor, tvm.runtime.Tensor]:
    """Input and output on a device (default: the host model)."""
    device = tvm.ext_dev(0) if device is None else device
    x = np.arange(SIZE, dtype="float32")
    return tvm.runtime.tensor(x, device), tvm.runtime.tensor(np.zeros(SIZE, "float32"), device)


def expected() -> np.ndarray:
    """What it computes, exactly."""
    return 2 * np.arange(SIZE, dtype="float32") + 1
