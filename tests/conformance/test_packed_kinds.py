# SPDX-License-Identifier: Apache-2.0
"""A product with each kind of packed weight that files have is one kernel of every device, no fallback."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import relax
from uir_tvm import CompileOptions
from uir_tvm.llm.gguf_blocks import KINDS
from uir_tvm.quantized import Packing, dequantized
from uir_tvm.quantized_calls import dequantize_call

from tests.asked import asked, in_turn

ROWS, LENGTH, COLUMNS = 3, 256, 16
#: Those of GGUF, and what folders of GPTQ and AWQ and models of torchao become.
PACKINGS = {kind.name: kind.packing for kind in KINDS.values() if kind.packing is not None} | {
    "4 bits, groups of 128 with offsets": Packing(4, 128, 0, "float16", True),
    "8 bits, groups of 128 with offsets": Packing(8, 128, 0, "float16", True),
    "4 bits, groups of 64": Packing(4, 64, 8),
    "8 bits, signed, groups of 128": Packing(8, 128, 128),
}
FEW = ("Q4_1", "Q6_K", "4 bits, groups of 64")


def model(weight: list[np.ndarray], packing: Packing) -> tvm.IRModule:
    """x [rows, length] by the turned weight."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((ROWS, LENGTH), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            values = builder.emit(dequantize_call(builder, packing, *map(relax.const, weight)))
            found = builder.emit_output(relax.op.matmul(x, builder.emit(relax.op.permute_dims(values))))
        builder.emit_func_output(found)
    return builder.get()


@pytest.mark.compares_itself
@pytest.mark.parametrize(
    ("name", "target"), in_turn(asked(FEW, tuple(PACKINGS)), ("uir-ascend", "uir-bang", "uir-cuda"))
)
def test_one_kernel_unpacks_and_multiplies(name: str, target: str) -> None:
    packing, rng = PACKINGS[name], np.random.default_rng(0)
    weight = [rng.integers(0, 256, packing.packed_shape(COLUMNS, LENGTH), np.uint8)]
    for _ in range(1 + packing.offsets):
        sides = rng.standard_normal(packing.scales_shape(COLUMNS, LENGTH))
        weight.append((0.1 * sides).astype(packing.scale_dtype))
    exe = uir_tvm.compile(model(weight, packing), target, options=CompileOptions(device="model"))
    x = rng.standard_normal((ROWS, LENGTH)).astype(np.float32)
    offsets = weight[2] if packing.offsets else None
    wanted = x @ dequantized(weight[0], weight[1], offsets, packing).T
    assert np.abs(np.asarray(exe(x)) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert [kernel.fallback for kernel in exe.info.kernels] == [""]
