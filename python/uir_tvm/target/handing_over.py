# SPDX-License-Identifier: Apache-2.0
"""Code of a kernel for all sizes that asks at its launch whether another kernel is for the sizes at hand."""

from __future__ import annotations

from collections.abc import Sequence

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_map

from ..bound_kernel import symbols_in
from ..igraph.space import Size
from ..igraph.tir_sizes import condition_of


def handing_over(
    whole: tirx.PrimFunc, variants: Sequence[tuple[Sequence[Size], tirx.PrimFunc]]
) -> tirx.PrimFunc:
    """Code that runs the first of some kernels whose sizes are those of the call, else what it ran before.

    Before: whole(x[n, 64], y[n, 64]), and for ``n == 1`` variant(x[1, 64], y[1, 64]).  After: whole, whose
    body is ``if n == 1: variant's body; else: its own``. What it asserts of sizes comes first.

    Parameters
    ----------
    whole : PrimFunc
        Without blocks, as a target made it.
    variants : sequence
        Ranges of its sizes, each with code that has its parameters.
    """
    if not variants:
        return whole
    steps = list(whole.body.seq) if isinstance(whole.body, tirx.SeqStmt) else [whole.body]
    asserted = [step for step in steps if isinstance(step, tirx.AssertStmt)]
    rest = [step for step in steps if not isinstance(step, tirx.AssertStmt)]
    chosen = tirx.SeqStmt(rest) if len(rest) > 1 else rest[0]
    variables = {str(each.name): each for each in symbols_in(whole)}
    for sizes, variant in reversed(variants):
        renamed = dict(zip(variant.params, whole.params, strict=True))
        renamed |= {each: variables[str(each.name)] for each in symbols_in(variant)}
        body = structural_map(variant.body, (tvm.ir.Var, lambda var, known=renamed: known.get(var, var)))
        chosen = tirx.IfThenElse(condition_of(whole, sizes), body, chosen)
    return whole.with_body(tirx.SeqStmt([*asserted, chosen]) if asserted else chosen)
