# SPDX-License-Identifier: Apache-2.0
"""A product of bytes by a weight of whole numbers, with a bias, as Relax."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax


def product(weight: np.ndarray, bias: np.ndarray, floats: bool) -> tvm.IRModule:
    """x [3, inputs] of uint8 less 7 by a weight, with a bias of int32, in int32 or float32."""
    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((3, len(weight)), "uint8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            emit = builder.emit
            moved = emit(op.subtract(emit(op.astype(x, "int32")), relax.const(7, "int32")))
            sums = emit(op.add(emit(op.matmul(moved, relax.const(weight))), relax.const(bias)))
            out = builder.emit_output(emit(op.astype(sums, "float32")) if floats else sums)
        builder.emit_func_output(out)
    return builder.get()
