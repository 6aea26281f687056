# SPDX-License-Identifier: Apache-2.0
"""CPU models: ``host`` is read from the machine, the others are fixed so that results do not depend on it.

A unit is a worker thread, one per core; a group is one unit, and there is no sram.  ``reg`` is the
memory that a unit has to itself without sharing a line with another: its core's second-level cache.
A tile that exceeds it still runs, but from shared cache or memory, which is what tiles are to avoid;
so it is the limit.  A tile that lives in vector registers and L1 is faster still, hence the second,
softer figure ``tile_bytes``.

Figures
-------
l1_bytes, l2_bytes
    Data cache per core.
l3_bytes
    The last-level cache that a core reaches, all of it (0 when there is none).
line_bytes
    A cache line; what two units write should not share one.
tile_bytes
    Preferred working set of a tile: half of L1d.  The other half holds what streams through (operand
    lines on their way to registers, the stack, prefetched lines); caches are not fully associative, and a
    working set of all of L1 evicts itself.
vector_registers
    Architectural vector registers.
mcpu
    LLVM's name of the processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...igraph.nodes import HardwareModel
from ...options import num_threads
from .. import host_cpu

KIB = 1024
MIB = 1024 * 1024

DEFAULT = "host"


def cpu_model(
    name: str,
    *,
    cores: int,
    vector_bytes: int,
    vector_registers: int,
    l1_bytes: int,
    l2_bytes: int,
    l3_bytes: int,
    mcpu: str,
    line_bytes: int = 64,
) -> HardwareModel:
    """The hardware model of a CPU with these caches (bytes) and vectors (bytes, count)."""
    figures = {
        "l1_bytes": l1_bytes,
        "l2_bytes": l2_bytes,
        "l3_bytes": l3_bytes,
        "line_bytes": line_bytes,
        "tile_bytes": l1_bytes // 2,
        "vector_registers": vector_registers,
        "mcpu": mcpu,
    }
    return HardwareModel(name, "cpu", cores, 1, l2_bytes, 0, vector_bytes, figures)


def _host() -> HardwareModel:
    caches, vectors = host_cpu.caches(), host_cpu.vectors()
    return cpu_model(
        "host",
        cores=num_threads(),
        vector_bytes=vectors.bytes,
        vector_registers=vectors.registers,
        l1_bytes=caches.l1_bytes,
        l2_bytes=caches.l2_bytes,
        l3_bytes=caches.l3_bytes,
        line_bytes=caches.line_bytes,
        mcpu=host_cpu.mcpu(),
    )


def _fixed(name: str, **figures: int | str) -> tuple[str, Callable[[], HardwareModel]]:
    return name, lambda: cpu_model(name, **figures)  # type: ignore[arg-type]


# The psABI levels x86-64-v2, -v3 and -v4 (x86-64 System V ABI, "Micro-Architecture Levels") are LLVM
# processor names and say exactly which instructions are there.
PRESETS: Mapping[str, Callable[[], HardwareModel]] = dict(
    [
        ("host", _host),
        # Skylake-SP: Intel 64 and IA-32 Architectures Optimization Reference Manual, on
        # the Skylake server: L1d 32 KB, L2 1 MB per core, 1.375 MB of L3 per core.
        _fixed(
            "avx512-2core",
            cores=2,
            vector_bytes=64,
            vector_registers=32,
            l1_bytes=32 * KIB,
            l2_bytes=MIB,
            l3_bytes=2 * 1408 * KIB,
            mcpu="x86-64-v4",
        ),
        # Zen 3: AMD Software Optimization Guide for Family 19h Processors (publication 56665):
        # L1d 32 KB, L2 512 KB per core, L3 32 MB per complex.
        _fixed(
            "avx2-4core",
            cores=4,
            vector_bytes=32,
            vector_registers=16,
            l1_bytes=32 * KIB,
            l2_bytes=512 * KIB,
            l3_bytes=32 * MIB,
            mcpu="x86-64-v3",
        ),
        # Nehalem, the first of this level: the same Intel manual: L1d 32 KB, L2 256 KB per core,
        # L3 8 MB shared by four cores.
        _fixed(
            "x86-64-v2",
            cores=4,
            vector_bytes=16,
            vector_registers=16,
            l1_bytes=32 * KIB,
            l2_bytes=256 * KIB,
            l3_bytes=8 * MIB,
            mcpu="x86-64-v2",
        ),
        # Arm Neoverse N1 Core Technical Reference Manual: L1d 64 KB, L2 up to 1 MB per core;
        # the cluster's L3 is up to the maker, 4 MB is the largest of its DynamIQ Shared Unit.
        _fixed(
            "neoverse-n1-4core",
            cores=4,
            vector_bytes=16,
            vector_registers=32,
            l1_bytes=64 * KIB,
            l2_bytes=MIB,
            l3_bytes=4 * MIB,
            mcpu="neoverse-n1",
        ),
    ]
)
