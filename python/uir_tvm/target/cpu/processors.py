# SPDX-License-Identifier: Apache-2.0
"""Processors by the names that LLVM has for them, this machine's and others: what schedules need of one.

A name is ``CPU[,MACHINE][,+FEATURE|,-FEATURE...][,Ncores]``: ``haswell``, ``neoverse-v1``,
``generic,aarch64,+sve``, ``znver4,-avx512f,16cores``.  LLVM says which instructions there are, and these how
wide vectors are and how many registers there are of them.
"""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from ...environment import num_threads
from ...hardware import instructions
from ...hardware.host_cpu import Vectors
from ...igraph.nodes import HardwareModel

#: Machines whose LLVM processors are looked for, as `platform.machine` calls them.
MACHINES = ("x86_64", "aarch64")
_SAME = {"AMD64": "x86_64", "arm64": "aarch64"}
#: LLVM's feature -> widest vectors, best first; the last row is what every 64-bit processor has.
VECTORS = (
    ("avx512f", Vectors(64, 32)),
    ("avx2", Vectors(32, 16)),
    ("neon", Vectors(16, 32)),
    ("", Vectors(16, 16)),
)
#: Bytes of a vector of SVE, of which LLVM only knows that it may have any length: Arm Neoverse V1 Technical
#: Reference Manual (256 bits); Fujitsu A64FX Microarchitecture Manual (512 bits).  Others run as NEON.
SVE_BYTES = {"neoverse-v1": 32, "a64fx": 64}
#: LLVM's processors that take a vector of 64 bytes as two of 32: Software Optimization Guide for the AMD Zen4
#: Microarchitecture (publication 57647), on its floating-point unit.
SPLIT = frozenset({"znver4"})
#: Processors whose products and attention are in panels of vectors of 64 bytes, as measured
#: (docs/library-operators.md); the library asks the CPU itself.
PANELS_OF_64 = frozenset({"znver4", "znver5"})
#: Processors that are ahead of loads and stores of successive lines by themselves, as measured
#: (docs/targets/cpu.md, "Fetching ahead"): fetches of ours took what they were to spare, or more.
RUNS_AHEAD = frozenset({"znver4", "znver5"})
#: Processors that are at the next page of several runs of memory while some of each is read in turn, as
#: measured (docs/targets/cpu.md, "Distant rows").
PAGES_APART = frozenset({"znver4", "znver5"})
#: Columns of known rows of exponentials up to which each pass goes over all rows of a tile, by processor, as
#: measured with vectors of 64 bytes (docs/targets/cpu.md, "Short rows").
PASS_COLUMNS = {"znver4": 1024, "znver5": 1024}
#: Bytes of the rows that are made at once where their operands lie in pages of their own and a cache holds
#: the result, by processor, as measured (docs/targets/cpu.md, "Rows in pages of their own"); of others half a
#: page.
BAND_BYTES = {"znver5": 4096}
#: Where Linux tells how long vectors of SVE are here.
SVE_LENGTH = Path("/proc/sys/abi/sve_default_vector_length")
#: Cores of a processor that is not at hand and whose name says nothing.
CORES = 4


def this_machine() -> str:
    """The architecture of this machine, by the names of `MACHINES`."""
    found = platform.machine()
    return _SAME.get(found, found)


@attrs.frozen
class Processor:
    """An LLVM processor.

    Attributes
    ----------
    cpu : str
        LLVM's name.
    machine : str
        The architecture; where LLVM has a processor of this name for several, this machine's is the default.
    features : tuple of str
        Instructions that it has (``+sve``) or lacks (``-avx512f``) beside those of its name.
    cores : int
        How many; 0: as many as this machine where it runs such code, else `CORES`.
    """

    cpu: str
    machine: str
    features: tuple[str, ...] = ()
    cores: int = 0

    @staticmethod
    def named(name: str) -> Processor | None:
        """The processor of a name; None where it is no such name, or LLVM cannot be asked."""
        cpu, *rest = name.split(",")
        machines = [part for part in rest if part in MACHINES]
        counts = [part for part in rest if re.fullmatch(r"[1-9]\d*cores", part)]
        features = tuple(part for part in rest if re.fullmatch(r"[+-][\w.-]+", part))
        machine = _machine_of(cpu, machines)
        if machine is None or len(counts) > 1 or len(machines) + len(counts) + len(features) < len(rest):
            return None
        return Processor(cpu, machine, features, int(counts[0].removesuffix("cores")) if counts else 0)

    @property
    def name(self) -> str:
        """As users write it."""
        machine = [self.machine] if self.machine != _machine_of(self.cpu) else []
        cores = [f"{self.cores}cores"] if self.cores else []
        return ",".join([self.cpu, *machine, *self.features, *cores])

    def config(self) -> dict[str, Any]:
        """What TVM's LLVM target is told of it."""
        return llvm_config(self.machine, self.cpu, self.features)

    def has(self, feature: str) -> bool:
        """Whether code for it may use an extension, by LLVM's name."""
        import tvm

        found = tvm.target.codegen.llvm_get_cpu_features(_target(self.config()))
        return feature in {str(each) for each in found}

    @property
    def vectors(self) -> Vectors:
        """The widest vectors that fixed code uses."""
        widest = next(row for feature, row in VECTORS if not feature or self.has(feature))
        if self.machine == "aarch64" and self.has("sve"):
            return widest._replace(bytes=max(widest.bytes, SVE_BYTES.get(self.cpu, 0)))
        return widest

    @property
    def workers(self) -> int:
        """Threads that share a kernel's work."""
        return self.cores or (CORES if self.missing_here() else num_threads())

    def missing_here(self) -> str:
        """What this machine lacks to run code for it; empty where that is nothing."""
        if self.machine != this_machine():
            return f"a processor of {self.machine}"
        lacking = instructions.missing(instructions.used_by(_target(self.config())))
        if lacking:
            return "the instructions " + ", ".join(lacking)
        return _shorter_vectors(self.machine, self.vectors.bytes)


def has_avx512(hw: HardwareModel) -> bool:
    """Whether code for a CPU model may use AVX-512, by LLVM's account of its processor."""
    said = {name: str(hw.figures.get(name, "")) for name in ("mcpu", "machine", "mattr")}
    features = tuple(filter(None, said["mattr"].split(",")))
    return said["machine"] == "x86_64" and bool(said["mcpu"]) and _has_avx512(said["mcpu"], features)


def splits_vectors(hw: HardwareModel) -> bool:
    """Whether a CPU model's processor takes its widest vectors as two halves."""
    return str(hw.figures.get("mcpu", "")) in SPLIT


def runs_ahead(hw: HardwareModel) -> bool:
    """Whether a CPU model's processor fetches successive lines before they are asked for."""
    return str(hw.figures.get("mcpu", "")) in RUNS_AHEAD


def reads_pages_apart(hw: HardwareModel) -> bool:
    """Whether a CPU model's processor reads several runs of memory faster than one, some of each in turn."""
    return str(hw.figures.get("mcpu", "")) in PAGES_APART


@functools.cache
def _has_avx512(cpu: str, features: tuple[str, ...]) -> bool:
    return Processor(cpu, "x86_64", features).has("avx512f")


def _machine_of(cpu: str, wanted: Sequence[str] = ()) -> str | None:
    """The first architecture, of those that are wanted, that has a processor of that name."""
    order = wanted or sorted(MACHINES, key=lambda each: each != this_machine())
    found = next((machine for machine in order if cpu in _processors(machine)), None)
    # LLVM's processors of x86 begin with those of 32 bits
    return None if found == "x86_64" and not Processor(cpu, found).has("64bit") else found


def machine_of_triple(triple: str) -> str:
    """The architecture of an LLVM triple; this machine's where that is empty."""
    found = triple.split("-")[0]
    return _SAME.get(found, found) or this_machine()


def llvm_config(
    machine: str, cpu: str, features: Sequence[str] = (), vector_bytes: int = 16
) -> dict[str, Any]:
    """The part of a TVM target's configuration that says for which processor LLVM compiles."""
    config: dict[str, Any] = {"mcpu": cpu}
    if machine and machine != this_machine():
        config["mtriple"] = f"{machine}-linux-gnu"
    if features:
        config["mattr"] = list(features)
    if machine == "aarch64" and vector_bytes > 16:
        # LLVM then makes instructions of SVE of vectors that are longer than those of NEON
        config["cl-opt"] = [f"-aarch64-sve-vector-bits-min:uint={8 * vector_bytes}"]
    return config


def _shorter_vectors(machine: str, needed: int) -> str:
    """Of a machine with SVE: what is missing if its vectors are shorter than those of the code."""
    if machine != "aarch64" or needed <= 16:
        return ""
    try:
        there = int(SVE_LENGTH.read_text())
    except (OSError, ValueError):
        return ""
    return f"vectors of {8 * needed} bits" if there < needed else ""


def _target(config: dict[str, Any]) -> Any:
    import tvm

    return tvm.target.Target({"kind": "llvm", **config})


def _processors(machine: str) -> frozenset[str]:
    """LLVM's processors of an architecture; none where TVM lacks its compiler, or LLVM the architecture."""
    from tvm.target import codegen

    try:
        found = codegen.llvm_get_cpu_archlist(_target({"mtriple": f"{machine}-linux-gnu"}))
    except Exception:  # TVM without its compiler has no such function, and says so in several ways
        return frozenset()
    return frozenset(str(each) for each in found)
