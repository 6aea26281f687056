# SPDX-License-Identifier: Apache-2.0
"""Loops of TVM's own kernels that store a first element whether there is one or not."""

from __future__ import annotations

from functools import reduce
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm_ffi.structural import structural_map

from ..schedule.blocks import collect
from ..schedule.make_tir import changed


def without_empty_stores(mod: tvm.IRModule) -> tvm.IRModule:
    """Kernels whose loops without blocks store nothing where a size of what they write is 0.

    Before: ``out[0] = x[0]; for k in range(n - 1): out[k + 1] = out[k] + x[k + 1]``, as TVM lowers a running
    sum.  After: the same if ``n > 0``.  With no elements the first store is behind the tensor's memory.
    """
    made = {
        var: function.with_body(structural_map(function.body, (SBlock, _guarded)))
        for var, function in mod.functions_items()
        if isinstance(function, tirx.PrimFunc) and any(map(_stores_itself, collect(function.body, SBlock)))
    }
    return tvm.IRModule({**dict(mod.functions_items()), **made}, attrs=mod.attrs) if made else mod


def _stores_itself(block: SBlock) -> bool:
    """Whether a block has loops of its own, of which nothing is told, over sizes that are no numbers."""
    told = bool(block.iter_vars) or bool(block.writes) or bool(collect(block.body, SBlockRealize))
    return not told and any(_open_sizes(store.buffer) for store in collect(block.body, tirx.BufferStore))


def _open_sizes(buffer: Any) -> list[Any]:
    return [size for size in buffer.shape if not isinstance(size, tirx.IntImm)]


def _guarded(block: SBlock) -> SBlock:
    if not _stores_itself(block):
        return block
    written = {store.buffer.name: store.buffer for store in collect(block.body, tirx.BufferStore)}
    opened = [sizes for buffer in written.values() if (sizes := _open_sizes(buffer))]
    if len(opened) < len(written):
        return block  # something is written whatever the sizes are
    some = [reduce(tirx.And, [size > 0 for size in sizes]) for sizes in opened]
    return changed(block, body=tirx.IfThenElse(reduce(tirx.Or, some), block.body, None))
