# SPDX-License-Identifier: Apache-2.0
"""Masks of positions that are compared where scores are masked: no kernel makes them, none is in memory.

Before: ``x = add(scores, where(less_equal(arange(n), arange(m) + d), 0, -inf))``
After: ``x = uir.band(scores)``, which compares the places of each score.

Constants stay what they are: they cost nothing but their reading.
"""

from __future__ import annotations

from .band import BAND, Band, band_of
from .program import Op, Program, View, is_float


def compare_in_place(program: Program) -> None:
    """Let the operators that add, or choose by, a mask that a rule computes compare places themselves.

    Parameters
    ----------
    program : Program
        Changed in place; after `attention.fuse_attention`, whose kernels have their rules.
    """
    for op in list(program.ops):
        found = _masked(op)
        if found is not None:
            scores, band = found
            op.name, op.call, op.operands, op.attrs = BAND, None, [scores], {"band": band}
    program.remove_dead()


def _masked(op: Op) -> tuple[View, Band] | None:
    """The scores and the rule of what masks them; None of other operators, and where a constant does."""
    if op.name not in ("add", "where") or not is_float(op.result.dtype) or len(op.shape) < 2:
        return None
    for index, scores in enumerate(op.operands):
        others: list[View | None] = [*op.operands]
        others[index] = None
        mask = next(view for view in others if view is not None)
        if scores.base.producer is None or mask.base.producer is None or scores.shape != op.shape:
            continue
        band = band_of(op.name, others)
        if band is not None:
            return scores, band
    return None
