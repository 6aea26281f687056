# SPDX-License-Identifier: Apache-2.0
"""Operators of narrow floats that a library computes in float32 alone."""

from __future__ import annotations

import tvm
from tvm import relax

from ..frontend.normalize import rewritten
from ..frontend.relax_view import dtype_of
from ..frontend.rules import Rewriter
from ..frontend.rules.rewriter import recall
from ..library.library_tables import LibraryTable

#: What narrow floats are computed in.
WIDE = "float32"


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

    if not table.widened:
        return mod

    def conv2d(call: tvm.ir.Call, rewriter: Rewriter) -> tvm.ir.Expr | None:
        dtypes = {dtype_of(each) for each in (*call.args, call)}
        if not dtypes <= table.widened.get("conv2d", frozenset()) or table.takes("conv2d", *dtypes):
            return None
        wide = [rewriter.emit(relax.op.astype(each, WIDE)) for each in call.args]
        made = rewriter.emit(recall(call, wide, out_dtype=WIDE))
        return rewriter.emit(relax.op.astype(made, dtype_of(call)))

    return rewritten(mod, {"nn.conv2d": (conv2d,)})
