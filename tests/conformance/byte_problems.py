# SPDX-License-Identifier: Apache-2.0
"""Products of bytes as ONNX Runtime's quantiser writes them, and what they are in int64.

Scales are powers of two, so that float32 rounds nothing behind the sums.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


@attrs.frozen(eq=False)
class Problem:
    """y = quantised(relu((x - zero) w + bias)), x and y of bytes; or a convolution of as many pixels."""

    rows: int
    k: int
    n: int
    dtype: str
    zero: int
    open_rows: bool = False
    window: int = 0

    def numbers(self) -> tuple[np.ndarray, ...]:
        """x, weight, the weight's scales, bias."""
        rng = np.random.default_rng(self.k + self.n)
        limits = np.iinfo(self.dtype)
        side = (2, self.k, 5, 6) if self.window else (self.rows, self.k)
        x = rng.integers(limits.min, limits.max + 1, side).astype(self.dtype)
        shape = (self.n, self.k, self.window, self.window) if self.window else (self.k, self.n)
        weight = rng.integers(-128, 128, shape).astype(np.int8)
        return x, weight, 2.0 ** rng.integers(-9, -4, self.n), rng.integers(-900, 900, self.n) / 4

    def model(self) -> onnx.ModelProto:
        """In the form of ONNX Runtime's quantiser."""
        x, weight, scales, bias = self.numbers()
        image = self.window > 0
        point = np.array(self.zero, self.dtype)
        arrays = {
            "sx": np.array(0.25, np.float32),
            "zx": point,
            "w": weight,
            "sw": scales.astype(np.float32),
            "b": bias.astype(np.float32),
            "sy": np.array(2.0, np.float32),
            "zy": point,
        }
        node = helper.make_node
        nodes = [
            node("DequantizeLinear", ["x", "sx", "zx"], ["xf"]),
            node("DequantizeLinear", ["w", "sw"], ["wf"], axis=0 if image else 1),
            *(
                [node("Conv", ["xf", "wf", "b"], ["biased"], pads=[self.window // 2] * 4)]
                if image
                else [node("MatMul", ["xf", "wf"], ["p"]), node("Add", ["p", "b"], ["biased"])]
            ),
            node("Relu", ["biased"], ["r"]),
            node("QuantizeLinear", ["r", "sy", "zy"], ["y"]),
        ]
        shape: list[Any] = list(x.shape)
        if self.open_rows:
            shape[0] = "rows"
        kind = TYPES[self.dtype]
        ends = [
            helper.make_tensor_value_info("x", kind, shape),
            helper.make_tensor_value_info("y", kind, None),
        ]
        parts = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], parts)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        return onnx.shape_inference.infer_shapes(made)

    def expected(self, x: np.ndarray) -> np.ndarray:
        """By int64."""
        _, weight, scales, bias = self.numbers()
        centred = x.astype(np.int64) - self.zero
        if self.window:
            padded = np.pad(centred, ((0, 0), (0, 0), *((self.window // 2,) * 2,) * 2))
            view = np.lib.stride_tricks.sliding_window_view(padded, (self.window, self.window), axis=(2, 3))
            sums = np.einsum("nchwij,ocij->nohw", view, weight.astype(np.int64))
            scales, bias = scales[:, None, None], bias[:, None, None]
        else:
            sums = centred @ weight.astype(np.int64)
        limits = np.iinfo(self.dtype)
        real = np.maximum(sums * (scales * 0.25) + bias, 0) / 2
        return np.clip(np.rint(real) + self.zero, limits.min, limits.max).astype(self.dtype)


PROBLEMS = {
    "a row": Problem(1, 32, 8, "int8", 0),
    "odd sizes": Problem(3, 33, 10, "uint8", 131),
    "a zero point with a sign": Problem(16, 33, 8, "int8", -7),
    "open rows": Problem(3, 32, 10, "uint8", 128, open_rows=True),
    "a convolution": Problem(0, 3, 10, "uint8", 131, window=3),
    "pixels": Problem(0, 8, 4, "int8", 5, window=1),
}
