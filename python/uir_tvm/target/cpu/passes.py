# SPDX-License-Identifier: Apache-2.0
"""The passes that pay on a CPU, in the order in which they run.

What it does without:

fold_operands      products want operands packed in registers, at the dtype of their sums
zero_pad_tiles     products take their bounds as they are
turn               the lowering packs operands, in whatever order they lie
hoist              the lowering reads operands through copies where they are used; a hoisted one needs memory
align_rows         vectors load and store from any address
coalesce_moves     the lowering vectorises over rows of its own choice; wider moves cost 10 to 30 % on small
                   kernels
matrix_unit        a core multiplies in its own registers
fold_broadcast     the lowering reads broadcast operands in place by itself
split_live_ranges  no loop has stages
multibuffer        a core has no engine that loads while it computes
allocate           LLVM places the buffers
"""

from __future__ import annotations

from collections.abc import Mapping

PASSES: Mapping[str, str] = {
    "identity": "its emitter names memory by pointers: fewer of them are more that LLVM sees through",
    "simplify": "a core pays for every instruction",
    "load_cse": "a second load takes a port of the core again, even from L1",
    "store_load_forwarding": "a store that is loaded again at once waits for the store buffer",
    "promote": "what one core alone reads belongs on its stack, not in memory that all share",
    "dead": "LLVM cannot drop stores to buffers that it must take for shared",
    "peel_tails": "masks keep LLVM from vectorising a loop; full tiles have none",
    "insert_sync": "each barrier of all units ends a parallel loop: threads meet, and caches with them",
}
