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
pass_columns
    Of rows of exponentials whose passes go over all rows of a tile each (where it is told).
band_bytes
    Of the rows that are made at once where their operands lie in pages of their own (where it is told).
vector_registers
    Architectural vector registers.
machine
    The architecture, as `platform.machine` calls it.
mcpu, mattr
    LLVM's name of the processor, and what it has or lacks beside that.

Of a processor that is none of these models LLVM knows the instructions, not the caches: its model has the
smallest ones (`PRESETS` takes its name, `processors.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import tvm

from ...environment import num_threads
from ...hardware import host_cpu
from ...hardware.copy_rate import copy_bytes_per_second
from ...hardware.rates import MemoryRate, Rate, Rates
from ...igraph.nodes import HardwareModel
from .processors import BAND_BYTES, PASS_COLUMNS, Processor, machine_of_triple, this_machine

KIB = 1024
MIB = 1024 * 1024

DEFAULT = "host"
#: What `PRESETS` takes beside the names that it lists.
FURTHER = "a processor of LLVM such as haswell, neoverse-v1 or znver4,-avx512f,16cores"


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
    machine: str = "x86_64",
    mattr: str = "",
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
        "machine": machine,
        "mattr": mattr,
    }
    if vector_bytes == 64 and mcpu in PASS_COLUMNS:
        figures["pass_columns"] = PASS_COLUMNS[mcpu]
    if mcpu in BAND_BYTES:
        figures["band_bytes"] = BAND_BYTES[mcpu]
    return HardwareModel(name, "cpu", cores, 1, l2_bytes, 0, vector_bytes, figures)


def _with_caches(
    name: str, caches: host_cpu.Caches, vectors: host_cpu.Vectors, *, cores: int, mcpu: str, **more: str
) -> HardwareModel:
    """The model of a processor whose caches and vectors were asked for."""
    return cpu_model(
        name,
        cores=cores,
        vector_bytes=vectors.bytes,
        vector_registers=vectors.registers,
        l1_bytes=caches.l1_bytes,
        l2_bytes=caches.l2_bytes,
        l3_bytes=caches.l3_bytes,
        line_bytes=caches.line_bytes,
        mcpu=mcpu,
        **more,
    )


def _host() -> HardwareModel:
    return _with_caches(
        "host",
        host_cpu.caches(),
        host_cpu.vectors(),
        cores=num_threads(),
        mcpu=host_cpu.mcpu(),
        machine=this_machine(),
    )


def _named(name: str, processor: Processor) -> HardwareModel:
    """The model of an LLVM processor, with caches that every processor has."""
    return _with_caches(
        name,
        host_cpu.SMALLEST,
        processor.vectors,
        cores=processor.workers,
        mcpu=processor.cpu,
        machine=processor.machine,
        mattr=",".join(processor.features),
    )


class _Models(dict[str, Callable[[], HardwareModel]]):
    """The models that are listed, and those of LLVM's processors by their names."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and Processor.named(name) is not None)

    def __missing__(self, name: str) -> Callable[[], HardwareModel]:
        processor = Processor.named(name)
        if processor is None:
            raise KeyError(name)
        return functools.partial(_named, name, processor)


def name_of(target: tvm.target.Target) -> str | None:
    """The model of a TVM target that names none: that of its LLVM processor; None for this machine's."""
    cpu = str(target.attrs.get("mcpu", ""))
    features = tuple(str(each) for each in target.attrs.get("mattr", ()))
    if not cpu or (cpu == host_cpu.mcpu() and not features):
        return None
    machine = machine_of_triple(str(target.attrs.get("mtriple", "")))
    return Processor(cpu, machine, features, int(target.attrs.get("num-cores", 0))).name


def _fixed(name: str, **figures: int | str) -> tuple[str, Callable[[], HardwareModel]]:
    return name, lambda: cpu_model(name, **figures)  # type: ignore[arg-type]


# The psABI levels x86-64-v2, -v3 and -v4 (x86-64 System V ABI, "Micro-Architecture Levels") are LLVM
# processor names and say exactly which instructions are there.
PRESETS: Mapping[str, Callable[[], HardwareModel]] = _Models(
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
            machine="aarch64",
        ),
    ]
)


#: Fused multiply-adds of whole vectors that a core starts per cycle, by instruction set: AVX-512 servers,
#: AVX2 since Haswell and Zen 2, and Neoverse N1 have two pipes (Intel 64 Optimization Reference Manual; AMD
#: Software Optimization Guide for Family 19h; Neoverse N1 Software Optimization Guide); before FMA one pipe
#: multiplies while one adds, which is as much as one.
FMA_PER_CYCLE = {"avx512f": 2, "avx2": 2, "asimd": 2, "": 1}


def host_rates(model: HardwareModel) -> Rates:
    """Rates of the machine that we run on, for a model that was made of it.

    Arithmetic is an estimate from what the machine reports: workers x vector lanes x pipes x clock; it is not
    reached while other things than arithmetic take the pipes.  Bandwidth is that of a copy, measured once for
    each of the memories behind dram.
    """
    if str(model.figures.get("mcpu", "")) != host_cpu.mcpu():
        why = f"the graph is for {model.figures.get('mcpu')}, this machine is {host_cpu.mcpu()}"
        unknown = Rate(None, why)
        return Rates(unknown, unknown, (MemoryRate("dram", None, unknown),), unknown)
    operations, contract = _host_arithmetic(model)
    return Rates(operations, contract, _host_memory(model))


def _host_arithmetic(model: HardwareModel) -> tuple[Rate, Rate]:
    clock = host_cpu.clock()
    if clock is None:
        unknown = Rate(None, "the machine does not tell its clock")
        return unknown, unknown
    flags = host_cpu.cpu_flags()
    pipes = next(found for flag, found in FMA_PER_CYCLE.items() if not flag or flag in flags)
    workers, lanes = _workers(model), int(model.vector_bytes) // 4
    rate = workers * lanes * pipes * clock.hertz
    cycles = f"{clock.hertz / 1e9:.2f} GHz ({clock.source})"
    said = f"{workers} workers x {lanes} fp32 lanes x {pipes} pipes x {cycles}"
    return Rate(rate, f"estimate: {said}"), Rate(2 * rate, f"estimate: {said} x 2")


def _workers(model: HardwareModel) -> int:
    """Worker threads that have a CPU to themselves."""
    return min(int(model.num_groups), len(host_cpu.cpus()))


def _host_memory(model: HardwareModel) -> tuple[MemoryRate, ...]:
    """Caches, then memory; a copy fills half of a cache, what a kernel may count on, or more than all.

    A walk over twice the last cache finds nothing there of the walk before; more would only take longer, and
    what a machine does not have cannot be touched.
    """
    workers = _workers(model)
    second, third = workers * int(model.figures["l2_bytes"]), int(model.figures["l3_bytes"])
    caches = [("L2", second)] + ([("L3", third)] if third > 2 * second else [])
    rows: list[tuple[str, int | None, int]] = [(name, size // 2, size // 2) for name, size in caches]
    rows.append(("memory", None, min(max(2 * caches[-1][1], 64 * MIB), host_cpu.memory_bytes() // 8)))
    return tuple(
        MemoryRate(name, capacity, functools.partial(_copy_rate, footprint, workers))
        for name, capacity, footprint in rows
    )


def _copy_rate(footprint: int, workers: int) -> Rate:
    measured = copy_bytes_per_second(footprint, workers)
    return Rate(measured, f"measured copy of {footprint / MIB:.1f} MiB, {workers} threads")


#: The other models name kinds of processor, not machines: their clock and memory are open.
RATES: Mapping[str, Callable[[HardwareModel], Rates]] = {"host": host_rates}
