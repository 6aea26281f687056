# SPDX-License-Identifier: Apache-2.0
"""A small model for an MLU, put together by hand: a product, a convolution, a kernel of two launches."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from uir_tvm.library import reference
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs
from uir_tvm.runtime.model_info import KernelInfo, ModelInfo
from uir_tvm.runtime.saved_graph import SavedGraph
from uir_tvm.runtime.tensors import TensorSpec

#: Two kernels: half = 2 * y, out = half + z, of 128 floats; two tasks, then the four cores of a cluster.
SOURCE = """// two kernels
#include <bang.h>

__nram__ char nram[512];

__mlu_entry__ void scale_0(float *y, float *half) {
  float *const t = (float *)(nram + 0);
  __memcpy_async(t, y + 64 * taskId, 256, GDRAM2NRAM);
  __sync_io();
  __bang_mul_scalar(t, t, 2.0f, 64);
  __sync_compute();
  __memcpy_async(half + 64 * taskId, t, 256, NRAM2GDRAM);
  __sync_io();
}

__mlu_entry__ void scale_1(float *z, float *half, float *out) {
  if (__is_mpu()) return;
  float *const t = (float *)(nram + 0);
  float *const u = (float *)(nram + 256);
  __memcpy_async(t, half + 32 * taskId, 128, GDRAM2NRAM);
  __memcpy_async(u, z + 32 * taskId, 128, GDRAM2NRAM);
  __sync_io();
  __bang_add(t, t, u, 32);
  __sync_compute();
  __memcpy_async(out + 32 * taskId, t, 128, NRAM2GDRAM);
  __sync_io();
}

extern "C" void scale_0_launch(cnrtQueue_t queue, float *y, float *half) {
  cnrtDim3_t dim = {2, 1, 1};
  scale_0<<<dim, cnrtFuncTypeBlock, queue>>>(y, half);
}

extern "C" void scale_1_launch(cnrtQueue_t queue, float *z, float *half, float *out) {
  cnrtDim3_t dim = {4, 1, 1};
  scale_1<<<dim, cnrtFuncTypeUnion1, queue>>>(z, half, out);
}
"""

PRODUCT = MatmulAttrs.contiguous((8, 16), (16, 16))
CONVOLUTION = Conv2dAttrs(input=(1, 2, 8, 8), weight=(2, 2, 3, 3), padding=(1, 1, 1, 1))


def _tensor(name: str, shape: list[int], constant: bool = False) -> dict[str, Any]:
    nbytes = 4 * int(np.prod(shape))
    return {"name": name, "shape": shape, "dtype": "float32", "bytes": nbytes, "constant": constant}


def _launch(name: str, grid: int, block: int, params: list[str]) -> dict[str, Any]:
    sizes = {"grid": grid, "block": block, "shared_bytes": 0, "cooperative": False}
    return {"name": name, **sizes, "params": params}


def _library(kind: str, inputs: list[str], out: str, attrs: Any) -> dict[str, Any]:
    ops = {"type": "library", "kind": kind, "ops": [kind]}
    return {**ops, "inputs": inputs, "outputs": [out], "attrs": json.loads(attrs.to_json())}


GRAPH = {
    "summary": {},
    "inputs": ["x", "image"],
    "outputs": [{"tensor": "out", "shape": [8, 16]}],
    "tensors": [
        _tensor("x", [8, 16]),
        _tensor("image", [1, 2, 8, 8]),
        _tensor("weight", [16, 16], constant=True),
        _tensor("filter", [2, 2, 3, 3], constant=True),
        _tensor("y", [8, 16]),
        _tensor("z", [1, 2, 8, 8]),
        _tensor("out", [8, 16]),
    ],
    "nodes": [
        _library("matmul", ["x", "weight"], "y", PRODUCT),
        _library("conv2d", ["image", "filter"], "z", CONVOLUTION),
        {"type": "custom", "kernel": "scale", "ops": ["add"], "inputs": ["y", "z"], "outputs": ["out"]},
    ],
    "why_not": [],
    "attentions": [],
}
CODE = {
    "launches": [_launch("scale_0", 2, 1, ["y", "half"]), _launch("scale_1", 1, 4, ["z", "half", "out"])],
    "params": [{"name": name, "dtype": "fp32", "size": 128, "role": "in"} for name in ("y", "z", "out")],
    "workspace": [{"name": "half", "bytes": 512}],
    "hardware": "mlu370-x8",
}


class ByHand:
    """What the writer asks of an executable."""

    def __init__(self) -> None:
        inputs = (TensorSpec("x", (8, 16), "float32"), TensorSpec("image", (1, 2, 8, 8), "float32"))
        kernel = KernelInfo("scale", "elementwise", "elementwise", "", {"source": SOURCE}, code=CODE)
        outputs = (TensorSpec("output0", (8, 16), "float32"),)
        self.info = ModelInfo("by hand", "uir-bang", inputs, outputs, (kernel,), {}, device="model")
        self.kernel_graph = SavedGraph(json.dumps(GRAPH))
        rng = np.random.default_rng(7)
        self.weight = rng.standard_normal((16, 16)).astype("float32")
        self.filter = rng.standard_normal((2, 2, 3, 3)).astype("float32")

    @property
    def standalone(self) -> ByHand:
        return self

    def flat(self, x: np.ndarray, image: np.ndarray) -> tuple[np.ndarray]:
        z = reference.conv2d(CONVOLUTION, image, self.filter, None).astype("float32")
        return (2 * (x @ self.weight) + z.reshape(8, 16),)
