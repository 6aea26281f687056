# SPDX-License-Identifier: Apache-2.0
"""A compiled CUDA source and what the compiler said of each of its kernels."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs

from ...errors import ToolchainError

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_OTHER = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[(\d+)\]")
_BARRIERS = re.compile(r"used (\d+) barriers")
_WARNING = re.compile(r"\bwarning\b", re.IGNORECASE)
#: Notes of ptxas on products of four warps: made one after the other (C7510 and those after it, by the
#: reason), and a fence or wait put in (C7517, C7519) where the text's own leaves registers out.
_SERIALISED = re.compile(r"\(C75\d\d\).*wgmma\S* instructions are serialized")
_MENDED = re.compile(r"\(C75\d\d\) warpgroup\.\w+ is injected")


@attrs.frozen
class KernelFigures:
    """What ptxas says of one kernel.

    Parameters
    ----------
    name : str
        Of the entry function.
    registers : int
        32-bit registers a thread.
    spill_stores, spill_loads : int
        Bytes a thread writes to and reads from local memory for want of registers.
    stack : int
        Bytes of local memory a thread holds: spills, and arrays that no register can hold.
    shared_bytes : int
        Of shared memory that the source declares; what a launch adds is not known here.
    constant_bytes : int
        Of constant memory, parameters included; 0 where the compiler does not say.
    barriers : int
        Named barriers of a block, number 0 included.
    """

    name: str
    registers: int
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    shared_bytes: int = 0
    constant_bytes: int = 0
    barriers: int = 0

    @property
    def spills(self) -> bool:
        """Whether anything that should be in registers is in local memory."""
        return bool(self.spill_stores or self.spill_loads or self.stack)


@attrs.frozen
class Cubin:
    """A source compiled for one architecture.

    Parameters
    ----------
    arch : str
        Such as ``sm_90a``.
    data : bytes
        The ELF image that ``cuModuleLoadData`` takes.
    report : tuple of KernelFigures
        In the order of the source's kernels as ptxas met them.
    warnings : tuple of str
        Each as the compiler wrote it, its first line only.
    tool : str
        What compiled it, such as ``nvcc 13.0.88``.
    """

    arch: str
    data: bytes = attrs.field(repr=lambda data: f"<{len(data)} bytes>")
    report: tuple[KernelFigures, ...]
    warnings: tuple[str, ...] = ()
    tool: str = ""

    def __getitem__(self, kernel: str) -> KernelFigures:
        """The figures of one kernel; KeyError where there is none of that name."""
        for figures in self.report:
            if figures.name == kernel:
                return figures
        raise KeyError(kernel)

    @property
    def spills(self) -> tuple[str, ...]:
        """Names of the kernels that keep registers' values in local memory."""
        return tuple(figures.name for figures in self.report if figures.spills)

    def described(self) -> dict[str, Any]:
        """All but the image, as plain data."""
        return {
            "arch": self.arch,
            "tool": self.tool,
            "warnings": list(self.warnings),
            "report": [attrs.asdict(figures) for figures in self.report],
        }

    def to_json(self) -> str:
        """`described` as text."""
        return json.dumps(self.described(), indent=1)

    @classmethod
    def from_json(cls, text: str, data: bytes) -> Cubin:
        """The cubin whose description `to_json` wrote."""
        fields = json.loads(text)
        report = tuple(KernelFigures(**figures) for figures in fields["report"])
        return cls(fields["arch"], data, report, tuple(fields["warnings"]), fields["tool"])

    def to_bytes(self) -> bytes:
        """Description and image in one; the description ends with a zero byte."""
        return self.to_json().encode() + b"\0" + self.data

    @classmethod
    def from_bytes(cls, text: bytes) -> Cubin:
        """The cubin that `to_bytes` wrote."""
        described, _, data = text.partition(b"\0")
        return cls.from_json(described.decode(), data)


def read_figures(log: str) -> tuple[KernelFigures, ...]:
    """The figures in what ``ptxas -v`` prints, alone or among the messages of nvcc or NVRTC.

    Device functions that were not inlined have properties of their own there; only entry functions count.
    """
    kernels: dict[str, dict[str, int]] = {}
    entry = function = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = function = match[1]
            kernels[entry] = {}
        elif match := _OTHER.search(line):
            function = match[1]
        elif function == entry and entry and (match := _STACK.search(line)):
            kernels[entry] |= dict(
                zip(("stack", "spill_stores", "spill_loads"), map(int, match.groups()), strict=True)
            )
        elif entry and (match := _USED.search(line)):
            rest = match[2]
            kernels[entry] |= {
                "registers": int(match[1]),
                "shared_bytes": sum(int(found) for found in _SHARED.findall(rest)),
                "constant_bytes": sum(int(size) for size, _ in _CONSTANT.findall(rest)),
                "barriers": sum(int(found) for found in _BARRIERS.findall(rest)),
            }
    return tuple(
        KernelFigures(name, **figures) for name, figures in kernels.items() if "registers" in figures
    )


def read_warnings(log: str) -> tuple[str, ...]:
    """The lines of a compiler's messages that are warnings, or say what it put in to make a product right."""
    return tuple(
        line.strip()
        for line in log.splitlines()
        if _MENDED.search(line) or (_WARNING.search(line) and not line.startswith(("Remark:", "ptxas info")))
    )


def refuse_serialised(log: str, name: str, arch: str) -> None:
    """Refuse a kernel whose products of four warps ptxas makes one after the other.

    It computes what it should, several times as slowly as its schedule was chosen for.

    Raises
    ------
    ToolchainError
        A message says so; ``log`` has all of them.
    """
    notes = [line.strip() for line in log.splitlines() if _SERIALISED.search(line)]
    if notes:
        raise ToolchainError(
            f"ptxas makes products of {name} for {arch} one after the other.",
            where=notes[0],
            need="wgmma instructions that overlap",
            remedy="report the kernel; the attribute wgmma=False of its iGraph prints mma.sync instead",
            log=log,
        )
