# SPDX-License-Identifier: Apache-2.0
"""How much of a device's last cache a kernel may count on."""

from __future__ import annotations

from uir_tvm.igraph import HardwareModel

#: More last-level cache than this for each core means that others use it too: a virtual machine is told of
#: all of a server's cache, or a process may use few of its cores.  What they count on is their share.
L3_PER_CORE = 16 * 1024 * 1024


def last_cache_bytes(hw: HardwareModel) -> int | None:
    """Bytes of the last cache that its groups can count on; None for a device that has none."""
    told = int(hw.figures.get("l3_bytes", 0))
    return min(told, int(hw.num_groups) * L3_PER_CORE) or None
