# SPDX-License-Identifier: Apache-2.0
"""What the CPU that we run on is: cores, caches, vectors, its name in LLVM."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

SYSFS = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


class Caches(NamedTuple):
    """Bytes of data cache: of L1 and L2 what one worker thread has to itself, of L3 all it reaches."""

    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    line_bytes: int


class Vectors(NamedTuple):
    """The widest vector: its bytes, and how many registers of it there are."""

    bytes: int
    registers: int


# Where neither sysfs nor lscpu tells: no 64-bit CPU of the last fifteen years has less.
SMALLEST = Caches(32 * 1024, 256 * 1024, 0, 64)

# flag in /proc/cpuinfo -> widest vector, best first; the last row is what any 64-bit CPU has
VECTORS: tuple[tuple[str, Vectors], ...] = (
    ("avx512f", Vectors(64, 32)),
    ("avx2", Vectors(32, 16)),
    ("asimd", Vectors(16, 32)),
    ("", Vectors(16, 16)),
)

# vector bytes -> LLVM processor, where LLVM cannot be asked (TVM's runtime library alone)
FALLBACK_MCPU = {64: "x86-64-v4", 32: "x86-64-v3", 16: "x86-64"}
# LLVM processors of x86-64 by what they have, most first: the last one every machine is
X86_LEVELS = ("x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
# LLVM's features whose instructions a compiler chooses by itself, other than the families of `_CHOSEN`:
# feature -> flag in /proc/cpuinfo
X86_FLAGS = {
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "f16c": "f16c",
    "fma": "fma",
    "fma4": "fma4",
    "gfni": "gfni",
    "lzcnt": "abm",
    "movbe": "movbe",
    "popcnt": "popcnt",
    "sse3": "pni",
    "tbm": "tbm",
    "xop": "xop",
}
_CHOSEN = re.compile(r"avx|ssse3|sse4|vaes|vpclmulqdq")


def cpus() -> list[int]:
    """The logical CPUs that this process may run on, sorted."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def memory_bytes() -> int:
    """Bytes of physical memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def caches(sysfs: Path = SYSFS) -> Caches:
    """The caches of the first CPU that this process may run on.

    A cache that several of this process's CPUs share is divided among them in L1 and L2.
    """
    return _caches(sysfs, tuple(cpus()))


@cache
def _caches(sysfs: Path, allowed: tuple[int, ...]) -> Caches:
    """Read once: they stay, but for which CPUs a process may run on."""
    return _from_sysfs(sysfs, list(allowed)) or _from_lscpu() or SMALLEST


def vectors(flags: frozenset[str] | None = None) -> Vectors:
    """The widest vectors, by the CPU's flags (default: those of this machine)."""
    flags = cpu_flags() if flags is None else flags
    return next(found for flag, found in VECTORS if not flag or flag in flags)


@cache
def cpu_flags() -> frozenset[str]:
    """The feature flags of the CPU, as /proc/cpuinfo names them."""
    try:
        text = CPUINFO.read_text()
    except OSError:
        return frozenset({"asimd"} if platform.machine() in ("arm64", "aarch64") else ())
    found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()


@cache
def mcpu() -> str:
    """LLVM's name of this CPU; of one whose features a virtual machine hides in part, the level that is left.

    LLVM knows a CPU by family and model, and takes its instructions for granted.
    """
    from tvm.target import codegen

    x86 = platform.machine() in ("x86_64", "AMD64")
    try:
        named = str(codegen.llvm_get_system_cpu())
        return next(name for name in (named, *X86_LEVELS) if not lacking(name)) if x86 else named
    except Exception:  # TVM without its compiler has no such function, and says so in several ways
        return FALLBACK_MCPU[vectors().bytes] if x86 else "generic"


def lacking(name: str, flags: frozenset[str] | None = None) -> list[str]:
    """What code for an LLVM processor of x86-64 may use, and the CPU of these flags (default: this) lacks."""
    import tvm

    flags = cpu_flags() if flags is None else flags
    if not flags:
        return []
    features = tvm.target.codegen.llvm_get_cpu_features(tvm.target.Target({"kind": "llvm", "mcpu": name}))
    spelled = {flag.replace("_", "") for flag in flags}
    return sorted(
        str(feature)
        for feature in features
        if (feature in X86_FLAGS or _CHOSEN.match(feature))
        and X86_FLAGS.get(feature, feature.replace(".", "")) not in spelled
    )


def parse_size(text: str) -> int:
    """Bytes of a size such as ``48K`` or ``32768K``."""
    found = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", text.strip())
    if not found:
        raise ValueError(f"not a size: {text!r}")
    return int(found.group(1)) * _UNITS[found.group(2)]


def parse_cpu_list(text: str) -> set[int]:
    """The CPUs of a list such as ``0-3,8``."""
    out: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        out.update(range(int(first), int(last or first) + 1))
    return out


def _from_sysfs(sysfs: Path, ours: list[int]) -> Caches | None:
    sizes: dict[int, int] = {}
    line = SMALLEST.line_bytes
    for folder in sorted((sysfs / f"cpu{ours[0]}" / "cache").glob("index*")):
        try:
            level, kind, size, shared, coherency = (
                (folder / f).read_text().strip()
                for f in ("level", "type", "size", "shared_cpu_list", "coherency_line_size")
            )
            if kind == "Instruction":
                continue
            sharers = max(len(parse_cpu_list(shared) & set(ours)), 1)
            sizes[int(level)] = parse_size(size) // (sharers if int(level) < 3 else 1)
            line = int(coherency) or line
        except (OSError, ValueError):
            continue  # a file that a container hides or a kernel words differently
    return _complete(sizes, line)


def _from_lscpu() -> Caches | None:
    command = ["lscpu", "-B", "--json", "-C=LEVEL,TYPE,ONE-SIZE,COHERENCY-SIZE"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        rows = json.loads(done.stdout)["caches"]
        data = [r for r in rows if r["type"] != "Instruction"]
        sizes = {int(r["level"]): int(r["one-size"]) for r in data}
        return _complete(sizes, int(data[0]["coherency-size"]) if data else SMALLEST.line_bytes)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None


def _complete(sizes: dict[int, int], line: int) -> Caches | None:
    """Caches from the sizes by level; without an L2 a unit's memory is its L1."""
    if 1 not in sizes:
        return None
    return Caches(sizes[1], sizes.get(2, sizes[1]), sizes.get(3, 0), line)


class Clock(NamedTuple):
    """Cycles per second, and where the figure is from."""

    hertz: float
    source: str


def clock(sysfs: Path = SYSFS, cpuinfo: Path = CPUINFO) -> Clock | None:
    """The fastest clock of this process's CPUs: their limit where that is told, else the present one."""
    try:
        limits = [float((sysfs / f"cpu{n}" / "cpufreq" / "cpuinfo_max_freq").read_text()) for n in cpus()]
        return Clock(max(limits) * 1e3, "cpufreq's limit")
    except (OSError, ValueError):
        pass  # virtual machines have no cpufreq
    try:
        found = re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", cpuinfo.read_text(), re.MULTILINE)
    except OSError:
        return None
    return Clock(max(map(float, found)) * 1e6, "cpuinfo's present clock") if found else None
