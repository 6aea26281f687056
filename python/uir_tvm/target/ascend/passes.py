# SPDX-License-Identifier: Apache-2.0
"""The passes that pay on an NPU, in the order in which they run.

What it does without:

zero_pad_tiles  there is no sram in which units would stage tiles
turn            cube cores turn operands on their way, in hardware
"""

from __future__ import annotations

from collections.abc import Mapping

PASSES: Mapping[str, str] = {
    "identity": "the UB is named by addresses: a name less is a live range less",
    "end_loops": "attention under a causal mask skips blocks; cube cores read operands where none has a mask",
    "simplify": "a vector instruction takes its start, some twenty cycles, however short it is",
    "load_cse": "a transfer takes its start, and the bandwidth that all cores share",
    "store_load_forwarding": "a way through global memory and back is two transfers and a wait between them",
    "promote": "temporary memory belongs into the UB of the core that has it to itself",
    "fold_operands": "cube cores take fp16 and bf16 as they are: no cast on vector cores before them",
    "dead": "what nobody reads takes room of the UB, and with it the second buffer",
    "deal_groups": "what all tiles of a core share is loaded once, and the next tile beside this one",
    "numbers_first": "beside the first load a chain of short instructions costs nothing, behind it all wait",
    "hoist": "a broadcast or a load inside of a loop takes its start in every iteration",
    "peel_tails": "masked rows are repeats of their own, or scalar work; full tiles are one instruction",
    "align_rows": "vector instructions and transfers take rows from blocks of 32 bytes on",
    "coalesce_moves": "a transfer of less than 16 KB does not reach the bandwidth",
    "matrix_unit": "cube cores read and write global memory alone: products need their operands there",
    "fold_broadcast": "an operand of one block for a row, by strides of zero, spares the copy over the tile",
    "split_live_ranges": "a pipelined loop loads ahead only what has memory of its own",
    "multibuffer": "three pipes load, compute and store at the same time, if buffers are apart",
    "insert_sync": "a flag between pipes, or a meeting of all cores, makes somebody wait",
    "allocate": "the UB has addresses, and nobody but us to give them out",
}
