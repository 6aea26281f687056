# SPDX-License-Identifier: Apache-2.0
"""The kinds of fault in CUDA C++."""

from __future__ import annotations

from .text_faults import Edit, FaultTable, drop, number, replace

#: Where an `if` may stand before what is dropped.
_NOTHING = replace(";")

#: Barriers and waits: what may be dropped only where it was needless.
_BARRIERS: dict[str, tuple[str, Edit]] = {
    "drop __syncwarp": (r"__syncwarp\(\);", drop),
    "drop __syncthreads": (r"__syncthreads\(\);", drop),
    "drop named_barrier": (r"named_barrier\([^;]*\);", drop),
    "drop grid sync": (r"cooperative_groups::this_grid\(\)\.sync\(\);", drop),
    "drop cp_async_wait": (r"cp_async_wait<\d+>\(\);", drop),
    "wait for one group fewer": (r"cp_async_wait<(\d+)>\(\);", number(1, lambda n: n + 1)),
    "drop cp_async_commit": (r"cp_async_commit\(\);", drop),
    "drop mbarrier_wait": (r"mbarrier_wait\([^;]*\);", _NOTHING),
    "drop mbarrier_expect_tx": (r"mbarrier_expect_tx\([^;]*\);", _NOTHING),
    "drop mbarrier_init": (r"mbarrier_init\([^;]*\);", _NOTHING),
    "drop wgmma_wait": (r"wgmma_wait<\d+>\([^;]*\);", drop),
    "wait without sums": (r"(wgmma_wait<\d+>)\([^;]*\);", replace(r"\1();")),
    "drop wgmma_commit": (r"wgmma_commit\(\);", drop),
    "drop wgmma_fence": (r"wgmma_fence\([^;]*\);", drop),
    "fence without sums": (r"(wgmma_fence\()\w+, (\w+\);)", replace(r"\1\2")),
    "drop fence_async": (r"fence_async\(\);", _NOTHING),
    "weaken __syncthreads": (r"__syncthreads\(\);", replace("__syncwarp();")),
}

#: Wrong numbers: addresses, masks, distances, bounds.
_VALUES: dict[str, tuple[str, Edit]] = {
    "lane mask": (
        r"(__shfl(?:_xor|_up|_down)?_sync)\(0xffffffffu",
        replace(r"\1(0x7fffffffu", r"\1(0x0000ffffu"),
    ),
    "shuffle distance": (
        r"__shfl_xor_sync\(0xffffffffu, [^,;]*, (\d+)\)",
        number(1, lambda n: n * 2 % 32 or 2, lambda n: n // 2 or 3),
    ),
    "misaligned vector": (
        r"((?:load|store)_vec(?:_stream)?<\w+, \d+>\()([^,;()]*(?:\([^;]*?\)[^,;()]*)*)(?=[,)])",
        replace(r"\1\2 + 1"),
    ),
    "copy of a neighbour": (r"(cp_async_\d+(?:_zfill)?\()([^,;]*),", replace(r"\1\2 + 4,")),
    # The last argument of the call: fewer bytes than it says become zero.
    "bytes of a copy": (
        r"(cp_async_\d+_zfill\([^;]*?[^,(]), ([^,;]*(?:\([^;]*\))?[^,;]*)\);",
        replace(r"\1, (\2) / 2);"),
    ),
    "bytes of a barrier object": (
        r"mbarrier_expect_tx\([^;]*, (\d+)\);",
        number(1, lambda n: n + 16, lambda n: n - 16),
    ),
    "parity of a barrier object": (
        r"(mbarrier_wait\([^;]*, )([^,;]*?)(?: % 2)?\);",
        replace(r"\1(\2 + 1) % 2);"),
    ),
    "arrivals of a barrier object": (
        r"mbarrier_init\([^;]*, (\d+)\);",
        number(1, lambda n: n + 1, lambda n: max(n - 1, 1)),
    ),
    # One barrier for every warp, and one for all sets.
    "number of a named barrier": (
        r"named_barrier\((\d+) \+ unit / \d+,",
        replace(r"named_barrier(\1 + unit,", r"named_barrier(\1,"),
    ),
    "threads of a named barrier": (
        r"named_barrier\([^;]*, (\d+)\);",
        number(1, lambda n: 2 * n, lambda n: n // 2, lambda n: n - 1),
    ),
    "shrunk shared range": (r"shared_at<\w+, (\d+)>", number(1, lambda n: n - 1, lambda n: n // 2)),
    "moved shared range": (
        r"shared_at<\w+, \d+>\(smem, (\d+)\)",
        number(1, lambda n: n - 16 if n >= 16 else n + 16),
    ),
    "stride of atoms": (
        r"(wgmma_tile<\d+>\(.*?), (\d+), (\d+)\)(?=[,)])",
        replace(r"\1, \2, \3 / 2)", r"\1, \2, \3 * 2)"),
    ),
    "row pitch": (r"(?<=[\w)] \* )(\d{2,})\b", number(1, lambda n: n + 1)),
    "off by one store": (r"^(\s*(?:if \([^;]*\) )?\w+)\[([^;\]]+)\](?= = )", replace(r"\1[(\2) + 1]")),
    "guard one further": (r"if \(([^;<>]*) < ([^;<>]*)\) ", replace(r"if (\1 <= \2) ")),
    "guard dropped": (r"if \([^;{]* < [^;{]*\) (?=\w)", drop),
    "loop ends early": (r"(; \w+ < )(\d+)(; \+\+)", number(2, lambda n: n - 1)),
    "loop ends late": (r"(; \w+ < )(\d+)(; \+\+)", number(2, lambda n: n + 1)),
    "lane number": (r"lane_div(\d+) = lane / (\d+)", number(2, lambda n: n * 2)),
    "result of a lane": (r"= lane % (\d+);", number(1, lambda n: n * 2)),
}

TABLE = FaultTable('extern "C" __global__', _BARRIERS, _VALUES)
