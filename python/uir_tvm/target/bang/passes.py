# SPDX-License-Identifier: Apache-2.0
"""The passes that pay on an MLU, in the order in which they run.

What it does without:

align_rows   vector functions and copies take rows from any address
matrix_unit  a core multiplies what lies in its own memories; the printer stages right operands
"""

from __future__ import annotations

from collections.abc import Mapping

PASSES: Mapping[str, str] = {
    "identity": "NRAM is named by addresses: a name less is a live range less",
    "end_loops": "attention under a causal mask skips blocks, and the rest of them have no masks for it",
    "simplify": "a vector instruction takes its start, however short it is",
    "load_cse": "a transfer from GDRAM takes its start, and the cluster's share of the bandwidth",
    "store_load_forwarding": "a way through GDRAM or SRAM and back is two transfers and a wait between them",
    "promote": "temporary memory belongs into a core's NRAM, or the SRAM of its cluster",
    "fold_operands": "the matrix unit takes halves as they are: no conversion before it",
    "dead": "what nobody reads takes room of NRAM, and with it the second buffer",
    "zero_pad_tiles": "products take whole blocks of rows and columns; zeros spare masks",
    "turn": "the matrix unit takes right operands by columns: one that lies so needs no transposition",
    "deal_groups": "what all tiles of a core share is loaded once, and the next tile beside this one",
    "numbers_first": "beside the first load a chain of short functions costs nothing, behind it all wait",
    "hoist": "a broadcast or a load inside of a loop takes its start in every iteration",
    "peel_tails": "masked elements are moved one segment at a time; full tiles at once",
    "coalesce_moves": "a transfer of less than 16 KB does not reach the bandwidth",
    "fold_broadcast": "functions that take one row for many by cycling spare the copy over the tile",
    "split_live_ranges": "a pipelined loop loads ahead only what has memory of its own",
    "multibuffer": "copies run beside functions, if buffers are apart",
    "insert_sync": "a core waits for all that a pipe was given, and a cluster for its slowest core",
    "allocate": "NRAM and SRAM have addresses, and nobody but us to give them out",
}
