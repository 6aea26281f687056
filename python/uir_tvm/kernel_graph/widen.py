# SPDX-License-Identifier: Apache-2.0
"""Operators of narrow floats that a library computes in float32 alone."""

from __future__ import annotations

import tvm
from tvm import relax

from ..frontend.normalize import rewritten
from ..frontend.relax_view import dtype_of, op_name
from ..frontend.rules import Rewriter
from ..frontend.rules.rewriter import recall
from ..library.library_tables import LibraryTable

#: What narrow floats are computed in.
WIDE = "float32"
CONV2D = "nn.conv2d"


def widen(mod: tvm.IRModule, table: LibraryTable) -> tvm.IRModule:
    """Give the library what it is better at than kernels of ours, in float32.

    Before: y = conv2d(x, w) of float16.  After: y = astype(conv2d(astype(x, float32), astype(w, float32)),
    float16); a constant w is a float32 constant, what makes x and what reads y cast on chip.

    Parameters
    ----------
    mod : tvm.IRModule
        Normalised.
    table : LibraryTable
        Its `widened` says which operators.
    """
    if not any(
        _wanted(binding.value, table) for block in mod["main"].body.blocks for binding in block.bindings
    ):
        return mod

    def conv2d(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
        if not _wanted(call, table):
            return None
        wide = [rewriter.emit(relax.op.astype(each, WIDE)) for each in call.args]
        made = rewriter.emit(recall(call, wide, out_dtype=WIDE))
        return rewriter.emit(relax.op.astype(made, dtype_of(call)))

    return rewritten(mod, {CONV2D: (conv2d,)})


def _wanted(call: tvm.ir.Expr, table: LibraryTable) -> bool:
    """Whether it is a convolution that the library computes in float32 alone."""
    if op_name(call) != CONV2D:
        return False
    dtypes = {dtype_of(each) for each in (*call.args, call)}
    return dtypes <= table.widened.get("conv2d", frozenset()) and not table.takes("conv2d", *dtypes)
