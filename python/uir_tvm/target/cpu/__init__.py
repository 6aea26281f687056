# SPDX-License-Identifier: Apache-2.0
"""uir-cpu: iGraph to TIR to LLVM.

views     read through copies            groups    fuse iOps into nests and groups
actions   iOps over common domains       values    registers, rows, or memory
memory    buffers and addresses          emit_*    TIR of nests, values, reductions, contractions
stream    stores that bypass the caches  prefetch  what the next tile needs
never_above  exponentials of at most zero
begin_contract  contractions that make zeros, or scale their sums, themselves
tall_tiles  neighbours that are one tile
tile_of_lines  transposed tiles that go to memory by whole lines
wide_elements  rows of a few bytes that are moved as one element
row_lines   rows that share lines of a large result
spans       vectors of which some lanes exist
short_columns  short reductions along columns, of pools, whose values stay in registers
runs        rows that follow each other in memory: what the processor does by itself
row_loops   passes over rows, each over all of them
"""

from __future__ import annotations

from ..record import TargetRecord, register_target

TARGET = register_target(
    TargetRecord(
        "uir-cpu",
        "cpu",
        __name__,
        rank=0,
        hardware=".presets",
        passes=".passes:PASSES",
        lower=".lower:lower",
        places=".places:PLACES",
        devices=("cpu",),
        space=".tiles:TILES",
        attention_space=".tiles:ATTENTION",
        library=".library:TABLE",
        machine=".machine:machine",
    )
)
