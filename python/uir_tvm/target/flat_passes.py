# SPDX-License-Identifier: Apache-2.0
"""TVM's passes for functions that a target lowered for the host: flat already, without blocks and threads."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import s_tir, tirx
from tvm_ffi.structural import WalkResult, structural_walk

from ..argument_checks import checked, expecting
from .host_side import ENTRY

#: Attribute of a function that these passes are for.
FLAT = "uir.flat"
#: Bytes of a buffer that LLVM keeps in a register.
A_VECTOR = 64
#: Bytes of larger buffers that need not share memory: an eighth of a small first cache.
APART = 4096


@tvm.transform.module_pass(opt_level=0, name="uir.ShareMemory")
def SharedMemory(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    """TVM's `StorageRewrite` of functions whose buffers take much of a cache.

    Of others it lets single values take each other's place, which LLVM keeps in registers anyway.
    """
    large = {gvar: func for gvar, func in mod.functions.items() if _bytes_of_buffers(func) > APART}
    if not large:
        return mod
    made = tirx.transform.StorageRewrite()(tvm.IRModule(large, attrs=mod.attrs))
    return tvm.IRModule({**mod.functions, **made.functions}, attrs=mod.attrs)


def _bytes_of_buffers(func: tvm.ir.BaseFunc) -> int:
    """What a function allocates; all that there is where the size of a buffer is no number."""
    found = 0

    def take(statement: tirx.AllocBuffer) -> WalkResult:
        nonlocal found
        size = _bytes_of(statement.buffer.ty)
        found += size if size > A_VECTOR else 0
        return WalkResult.ADVANCE

    if isinstance(func, tirx.PrimFunc):
        structural_walk(func.body, (tirx.AllocBuffer, take))
    return found


def _bytes_of(kind: Any) -> int:
    """What a buffer of a type takes; there are hundreds, and each question to TVM takes a microsecond."""
    number = 1
    for size in kind.shape:
        number *= int(size.value) if isinstance(size, tirx.IntImm) else APART
    dtype = kind.dtype.dtype
    return number * -(-int(dtype.bits) * int(dtype.lanes) // 8)


def flat_passes() -> tvm.transform.Pass:
    """What is left to do of TVM's pipeline ``s_tir`` for a function without blocks, in that pipeline's order.

    The passes on blocks would find nothing, but for one: `CompactBufferAllocation` makes buffers smaller
    where sizes decide how much is used of them. Buffers of a kernel have the size that they need at most, and
    one whose size is no number is neither on the stack nor in registers any more. Of kernels with open sizes
    the pass takes longer than all others together. `FlattenBuffer` has nothing to flatten: buffers have one
    dimension, and it would add zeros to their indices. Expressions are simplified once, when their numbers
    are narrow. `CommonSubexprElim` and `RemoveNoOp` are left to LLVM, which finds the same.
    """
    config = tvm.transform.PassContext.current().config
    passes = [
        tirx.transform.BF16ComputeLegalize(),
        tirx.transform.NarrowDataType(32),
        tirx.transform.VectorizeLoop(not bool(config.get("tirx.disable_vectorize", False))),
    ]
    if not bool(config.get("tirx.disable_storage_rewrite", False)):
        passes.append(SharedMemory)
    passes += [
        tirx.transform.UnrollLoop(),
        tirx.transform.StmtSimplify(),
        s_tir.transform.RewriteUnsafeSelect(),
    ]
    passes += [
        tirx.transform.FP8ComputeLegalize(),
        tirx.transform.VerifyMemory(),
        tirx.transform.SplitHostDevice(),
        tirx.transform.MakePackedAPI(),
        tirx.transform.FP8StorageLegalize(),
        tirx.transform.BF16StorageLegalize(),
    ]
    return tvm.transform.Sequential(passes)


def finishing(stock: tvm.transform.Pass) -> tvm.transform.Pass:
    """TVM's pipeline ``s_tir``, but `flat_passes` for functions with the attribute `FLAT`.

    Of functions that a program calls, arguments are `checked` together.
    """

    @tvm.transform.module_pass(opt_level=0, name="uir.FinishFunctions")
    def finish(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
        mod = expecting(mod, by_address=lambda func: not _is_flat(func))
        flat = {gvar: func.without_attr(FLAT) for gvar, func in mod.functions.items() if _is_flat(func)}
        if not flat:
            return checked(stock(mod))
        made = flat_passes()(tvm.IRModule(flat, attrs=mod.attrs))
        rest = {gvar: func for gvar, func in mod.functions.items() if gvar not in flat}
        if rest:
            others = stock(tvm.IRModule(rest, attrs=mod.attrs))
            entries = {gvar for gvar, func in rest.items() if func.attrs and ENTRY in func.attrs}
            for gvar, func in others.functions.items():
                # TVM takes a function that is alone for the one that a library's call runs
                alone = len(rest) == 1 and gvar not in entries and func.attrs and ENTRY in func.attrs
                made[gvar] = func.without_attr(ENTRY) if alone else func
        return checked(made)

    return finish


def _is_flat(func: tvm.ir.BaseFunc) -> bool:
    return isinstance(func, tirx.PrimFunc) and bool(func.attrs) and FLAT in func.attrs
