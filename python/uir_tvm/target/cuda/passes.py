# SPDX-License-Identifier: Apache-2.0
"""The passes that pay on a GPU, in the order in which they run.

What it does without:

turn               a tile in reg has the layout that its fragments have; loads take elements from anywhere
align_rows         a tile in reg is spread over the registers of lanes: it has no rows of bytes
matrix_unit        tensor cores belong to the warp: they read registers and shared memory
fold_broadcast     a broadcast value takes no registers of its own where it is used
split_live_ranges  registers are named by the compiler: values in one pointer do not tie each other
allocate           registers have no addresses; the printer lays out shared memory, with swizzles and padding
"""

from __future__ import annotations

from collections.abc import Mapping

PASSES: Mapping[str, str] = {
    "identity": "registers have names alone: every further one is a copy that nvcc must see through",
    "end_joint_loops": "a round that does nothing is lost time, and a mask is a predicate on every access",
    "simplify": "a warp pays for every instruction, most of all for the special functions",
    "load_cse": "a load of global memory has hundreds of cycles of latency",
    "store_load_forwarding": "what goes through shared memory waits for its banks and for a barrier",
    "promote": "registers, and shared memory for a block, spare the way through L2",
    "fold_operands": "tensor cores read narrow operands, which nobody needs to widen, out of shared memory",
    "dead": "registers that hold what nobody reads lower the number of warps at once",
    "zero_pad_tiles": "products without masks are whole matrix instructions, and their loads asynchronous",
    "hoist": "an invariant load of a loop costs its latency in every iteration",
    "peel_tails": "masks are predicates on every access; full tiles have none",
    "coalesce_moves": "a lane moves up to 16 bytes by an instruction, a warp whole lines",
    "multibuffer": "asynchronous copies fill the next buffer while a warp computes",
    "insert_sync": "every __syncthreads stops a block, and every __syncwarp a warp",
}
