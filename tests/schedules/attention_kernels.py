# SPDX-License-Identifier: Apache-2.0
"""Attention kernels as the kernel graph makes them, their scheduled graphs, and their results in NumPy."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import tvm
from tvm import relax
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.igraph import IGraph
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.library.library_tables import AttentionLimits
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu.library import TABLE as CPU

from tests.extracted import extracted

from ..kernel_graph.programs import module

MODELS = {
    "cpu": hardware.get("avx512-2core"),
    "cuda": hardware.get("a100", "cuda"),
    "bang": hardware.get("mlu370-x8", "bang"),
}

ASCEND = hardware.get("910b2", "ascend")

FUSING = attrs.evolve(
    CPU, attention=AttentionLimits(frozenset({"float32", "float16", "bfloat16"}), 256), tiled_attention=()
)


def kernel(
    heads: tuple[int, int], rows: int, keys: int, head: int, dtype: str = "float32", safe: bool = False
) -> tvm.tirx.PrimFunc:
    """The attention kernel that the kernel graph makes: q heads, kv heads, masked, result (b, m, h, d)."""
    q_heads, kv_heads = heads
    inputs = {
        "q": ((1, q_heads, rows, head), dtype),
        "k": ((1, kv_heads, keys, head), dtype),
        "v": ((1, kv_heads, keys, head), dtype),
        "seen": ((rows, keys), "bool"),
    }

    def body(emit: Any, q: Any, k: Any, v: Any, seen: Any) -> Any:
        group = q_heads // kv_heads
        if group > 1:
            wide = [emit(op.reshape(x, (1, kv_heads, 1, keys, head))) for x in (k, v)]
            wide = [emit(op.broadcast_to(x, (1, kv_heads, group, keys, head))) for x in wide]
            k, v = (emit(op.reshape(x, (1, q_heads, keys, head))) for x in wide)
        zero, low = relax.const(0.0, dtype), relax.const(-math.inf, dtype)
        product = emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))
        scaled = emit(op.multiply(product, relax.const(head**-0.5, dtype)))
        if not safe:
            masked = emit(op.where(seen, scaled, low))
            attended = emit(op.matmul(emit(op.nn.softmax(masked, -1)), v))
        else:
            masked = emit(op.add(scaled, emit(op.where(seen, zero, low))))
            weights = emit(op.nn.softmax(masked, -1))
            flags = emit(op.where(seen, relax.const(1, "int32"), relax.const(0, "int32")))
            row = emit(op.greater(emit(op.max(flags, axis=-1, keepdims=True)), relax.const(0, "int32")))
            attended = emit(op.matmul(emit(op.where(row, weights, zero)), v))
        return emit(op.reshape(emit(op.permute_dims(attended, [0, 2, 1, 3])), (1, rows, q_heads * head)))

    graph = build_with(module(inputs, body), FUSING)
    (node,) = [node for node in graph.custom_ops if node.hero == "attention"]
    return node.prim_func


def graph_of(func: tvm.tirx.PrimFunc, kind: str) -> IGraph:
    model = MODELS[kind] if kind in MODELS else ASCEND
    scheduled = apply_default(func, model)
    assert scheduled.attrs["uir.recipe"] == "attention"
    graph = extracted(scheduled, model)
    return graph


SHAPES = {
    "one block": ((2, 2), 16, 32, 16),
    "ragged": ((2, 2), 37, 150, 16),
    "grouped": ((4, 2), 20, 70, 16),
    "decode": ((2, 2), 1, 300, 32),
    "grouped decode": ((8, 2), 1, 130, 16),
}


def masked_reference(q: Any, k: Any, v: Any, seen: Any) -> Any:
    x = np.where(seen, q.astype("float64") @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        out = e / e.sum(-1, keepdims=True) @ v.astype("float64")
    return out.transpose(0, 2, 1, 3)
