# SPDX-License-Identifier: Apache-2.0
"""What the static memory plan saves: bytes of the intermediates, and of the buffers that hold them."""

from __future__ import annotations

from typing import Any

import tvm
from attrs import frozen
from tvm import relax

from ..frontend.relax_view import integers, op_name


@frozen
class MemoryPlan:
    """Bytes of DRAM for intermediates.

    Attributes
    ----------
    tensors : int
        Sum of all intermediates and outputs.
    planned : int
        Bytes that the plan allocates for those whose buffers are shared, plus outputs.
    buffers : int
        Allocations of the plan.
    """

    tensors: int
    planned: int
    buffers: int


def memory_plan(mod: tvm.IRModule) -> MemoryPlan:
    """Plan the memory of a module of `to_relax.to_relax` and count."""
    lowered = tvm.transform.Sequential(
        [
            relax.transform.ToNonDataflow(),
            relax.transform.RemovePurityChecking(),
            relax.transform.CallTIRRewrite(),
        ]
    )(mod)
    planned = relax.transform.StaticPlanBlockMemory()(lowered)
    before = [_tensor_bytes(call) for call in _calls(lowered, "builtin.alloc_tensor")]
    storages = [(integers(call.args[0]) or (0,))[0] for call in _calls(planned, "memory.alloc_storage")]
    left = [_tensor_bytes(call) for call in _calls(planned, "builtin.alloc_tensor")]
    return MemoryPlan(sum(before), sum(storages) + sum(left), len(storages) + len(left))


def _calls(mod: tvm.IRModule, name: str) -> list[Any]:
    return [
        binding.value
        for block in mod["main"].body.blocks
        for binding in block.bindings
        if op_name(binding.value) == name
    ]


def _tensor_bytes(call: Any) -> int:
    size = 1
    for extent in integers(call.args[0]) or ():
        size *= extent
    dtype = tvm.DataType(str(call.args[1].value if hasattr(call.args[1], "value") else call.args[1].dtype))
    return size * ((dtype.bits * dtype.lanes + 7) // 8)
