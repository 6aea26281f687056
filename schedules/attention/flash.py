# SPDX-License-Identifier: Apache-2.0
"""Attention as one pass over the keys, with running maxima and sums.

Before::

    S[i, j] = sum_k Q[i, k] * K[j, k];  X = f(S)
    M[i] = max_j X[i, j];  L[i] = sum_j exp(X[i, j] - M[i])
    O[i, c] = sum_j exp(X[i, j] - M[i]) / L[i] * V[j, c]

After, a unit having a tile of rows i and walking blocks J of keys::

    m, l, o = lowest, 0, 0
    for J:
      s = Q @ K[J]^T;  x = f(s)
      n = max(m, max_j x);  p = exp(x - n);  a = exp(m - n)
      l = l * a + sum_j p;  o = o * a + p @ V[J];  m = n
    O = o / l

Scores and weights live in reg and never reach dram.  Where a group has several units and a memory of its own,
they have different rows of one head and stage each block of keys and values in sram together.

``m`` begins at the lowest finite number and not at -inf, so that a block whose keys the mask closes adds
nothing (exp(-inf - lowest) = 0) instead of exp(-inf + inf).  A row without any open key ends with l = 0:
not a number, or zeros where the function says so.

Source: the blocked form of the online normaliser (arXiv 1805.02867) carried through the second product, as in
PowerFusion (arXiv 2307.04995) and FlashAttention (arXiv 2205.14135).  The result differs from the first form
by rounding only.
"""

from __future__ import annotations

from tvm import tirx
from uir_tvm.schedules.attention.parts import Parts
from uir_tvm.schedules.attention.split import SplitWriter
from uir_tvm.schedules.attention.tile import FlashTile
from uir_tvm.schedules.attention.writer import FlashWriter


def flash_function(func: tirx.PrimFunc, parts: Parts, tile: FlashTile) -> tirx.PrimFunc:
    """The scheduled function (see the module's text).

    Parameters
    ----------
    func : PrimFunc
        The unscheduled one: its parameters and attributes stay.
    parts : Parts
        What it computes.
    tile : FlashTile

    Returns
    -------
    PrimFunc
        As extraction reads it, annotated (`annotations`).
    """
    writer = SplitWriter if tile.parts > 1 else FlashWriter
    return writer(func, parts, tile).write()
