# SPDX-License-Identifier: Apache-2.0
"""Buffers of TVM's own kernels, held to start where their memory does."""

from __future__ import annotations

import tvm
from tvm import tirx


def without_offsets(mod: tvm.IRModule) -> tvm.IRModule:
    """Kernels whose parameters start at element 0, as every tensor of a kernel graph does.

    Before: ``def sort(x: T.Buffer((3, 7), elem_offset=offset))``.  After: ``def sort(x: T.Buffer((3, 7)))``.
    An offset that is a variable is bound by the caller of a kernel alone: where kernels are merged, and such
    a parameter becomes a buffer within, nothing would bind it.
    """
    made = {
        var: _from_zero(function)
        for var, function in mod.functions_items()
        if isinstance(function, tirx.PrimFunc)
    }
    return tvm.IRModule({**dict(mod.functions_items()), **made}, attrs=mod.attrs)


def _from_zero(function: tirx.PrimFunc) -> tirx.PrimFunc:
    bound = {
        param: tirx.decl_buffer(
            param.shape,
            param.dtype,
            param.name,
            strides=param.strides,
            elem_offset=tirx.const(0, offset.ty.dtype),
            scope=param.scope(),
            data_alignment=param.data_alignment,
            offset_factor=param.offset_factor,
        )
        for param in function.params
        if tirx.buffer.is_buffer_var(param) and isinstance(offset := param.ty.elem_offset, tirx.Var)
    }
    return function.specialize(bound) if bound else function
