# SPDX-License-Identifier: Apache-2.0
"""A small model for Ascend, put together by hand: a product, then a kernel of two launches."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from uir_tvm.library.attrs import MatmulAttrs
from uir_tvm.runtime.model_info import KernelInfo, ModelInfo
from uir_tvm.runtime.saved_graph import SavedGraph
from uir_tvm.runtime.tensors import TensorSpec

#: Two kernels: half = 2 * y, out = half + x, of 128 floats, on two cores.
SOURCE = """// two kernels
#include "kernel_operator.h"

using namespace AscendC;

// half = 2 * y
extern "C" __global__ __aicore__ void scale_0(GM_ADDR y, GM_ADDR half) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 256);
  GlobalTensor<float> from, to;
  from.SetGlobalBuffer((__gm__ float*)y + 64 * GetBlockIdx(), 64);
  to.SetGlobalBuffer((__gm__ float*)half + 64 * GetBlockIdx(), 64);
  LocalTensor<float> t = ub.Get<float>();
  DataCopy(t, from, 64);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Muls(t, t, 2.0f, 64);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to, t, 64);
}

// out = half + x
extern "C" __global__ __aicore__ void scale_1(GM_ADDR x, GM_ADDR half, GM_ADDR out) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
  TPipe pipe;
  TBuf<TPosition::VECCALC> ub;
  pipe.InitBuffer(ub, 512);
  GlobalTensor<float> a, b, to;
  a.SetGlobalBuffer((__gm__ float*)half + 64 * GetBlockIdx(), 64);
  b.SetGlobalBuffer((__gm__ float*)x + 64 * GetBlockIdx(), 64);
  to.SetGlobalBuffer((__gm__ float*)out + 64 * GetBlockIdx(), 64);
  LocalTensor<float> t = ub.Get<float>();
  LocalTensor<float> u = t[64];
  DataCopy(t, a, 64);
  DataCopy(u, b, 64);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  Add(t, t, u, 64);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  DataCopy(to, t, 64);
}
"""


def _tensor(name: str, shape: list[int], constant: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "shape": shape,
        "dtype": "float32",
        "bytes": 4 * int(np.prod(shape)),
        "constant": constant,
    }


def _launch(name: str, params: list[str]) -> dict[str, Any]:
    return {"name": name, "grid": 2, "block": 1, "shared_bytes": 0, "cooperative": False, "params": params}


GRAPH = {
    "summary": {},
    "inputs": ["x"],
    "outputs": [{"tensor": "out", "shape": [8, 16]}, {"tensor": "x", "shape": [8, 16]}],
    "tensors": [
        _tensor("x", [8, 16]),
        _tensor("weight", [16, 16], constant=True),
        _tensor("bias", [16], constant=True),
        _tensor("y", [8, 16]),
        _tensor("out", [8, 16]),
    ],
    "nodes": [
        {
            "type": "library",
            "kind": "matmul",
            "ops": ["matmul", "add"],
            "inputs": ["x", "weight", "bias"],
            "outputs": ["y"],
            "attrs": json.loads(MatmulAttrs.contiguous((8, 16), (16, 16), bias=True).to_json()),
        },
        {"type": "custom", "kernel": "scale", "ops": ["add"], "inputs": ["y", "x"], "outputs": ["out"]},
    ],
    "why_not": [],
    "attentions": [],
}
CODE = {
    "launches": [_launch("scale_0", ["y", "half"]), _launch("scale_1", ["x", "half", "out"])],
    "params": [{"name": name, "dtype": "fp32", "size": 128, "role": "in"} for name in ("y", "x", "out")],
    "workspace": [{"name": "half", "bytes": 512}],
    "hardware": "910b2",
}


#: The kernel as a function of the host, as `export.host_code` describes it.
HOST = {"source": "// C\n", "params": [{"dtype": "float32", "shape": [8, 16]}] * 3}


class ByHand:
    """What the writer asks of an executable."""

    def __init__(self, fallback: str = "", host: dict[str, Any] | None = None) -> None:
        spec = TensorSpec("x", (8, 16), "float32")
        code: dict[str, Any] = ({"host": host} if host else {}) if fallback else CODE
        texts = {} if fallback else {"source": SOURCE}
        kernel = KernelInfo("scale", "elementwise", "elementwise", fallback, texts, code=code)
        outputs = (TensorSpec("output0", (8, 16), "float32"), TensorSpec("output1", (8, 16), "float32"))
        self.info = ModelInfo("by hand", "uir-ascend", (spec,), outputs, (kernel,), {}, device="model")
        self.kernel_graph = SavedGraph(json.dumps(GRAPH))
        rng = np.random.default_rng(7)
        self.weight = rng.standard_normal((16, 16)).astype("float32")
        self.bias = rng.standard_normal(16).astype("float32")

    @property
    def standalone(self) -> ByHand:
        return self

    def flat(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return 2 * (x @ self.weight + self.bias) + x, x
