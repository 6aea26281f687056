# SPDX-License-Identifier: Apache-2.0
"""Candidates that are projects of a vendor's toolkit: each builds, checks and times itself (its run.sh)."""

from __future__ import annotations

import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from measuring import Refused, confirm, measure

#: What a project's run.sh ends with: right; an output differs; it failed; the build failed.
RIGHT, DIFFERS, FAILED, UNBUILT = 0, 1, 2, 3
#: Runs before those that count, and the least and most that do.
WARMUP, LEAST, MOST = 3, 10, 10000
#: What is kept of a complaint.
SAID = 300
_TIMES = re.compile(r"^\d+ runs: median ([\d.]+) ms", re.MULTILINE)
_DIFFERS = re.compile(r"^BAD +(.*)$", re.MULTILINE)


class Failed(Exception):
    """A program that fails beyond what it computes."""


class Machine:
    """A machine with a device and its toolkit."""

    def __init__(self, folder: str, manifest: dict[str, Any], options: Any) -> None:
        self.folder, self.manifest = folder, manifest
        self.command = shlex.split(options.run) if options.run else ["./run.sh"]
        self.device = int(options.device)

    def describe(self) -> dict[str, Any]:
        """The machine, as results name it."""
        toolchain = toolchain_of(self.manifest["toolchain"])
        if not toolchain and self.command == ["./run.sh"]:
            names = " or ".join(self.manifest["toolchain"]["names"])
            raise Failed(f"there is no {names} here: install the vendor's toolkit, source its environment")
        return {
            "name": platform.node(),
            "hardware": self.manifest["hardware"],
            "toolchain": toolchain or "unknown",
        }

    def measure(self, candidate: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a candidate."""
        return measure(self.prepare, candidate)

    def confirm(self, candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Results of candidates that are timed in turns."""
        return confirm(self.prepare, candidates)

    def prepare(self, candidate: Mapping[str, Any]) -> tuple[Any, str]:
        """Build a candidate, run it, compare; what times it, or a text that says what is wrong."""
        program = _Program(self, candidate["artefact"])
        # once: what updates a parameter in place would give something else the second time
        status, out, err = program.run("--check")
        differing = _DIFFERS.findall(out)
        if status == DIFFERS and differing:
            return None, "; ".join(differing)
        if status == UNBUILT:
            raise Refused("it does not build: " + _last(err))
        program.read(status, out, err)
        return program, ""


class _Program:
    """A built candidate."""

    note = ""

    def __init__(self, machine: Machine, artefact: Mapping[str, str]) -> None:
        self.folder = os.path.join(machine.folder, artefact["project"])
        root = os.path.join(machine.folder, artefact["check"])
        self.command = [*machine.command, "--device", str(machine.device), "--project", root]
        self.once = 0.0

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run it: exit status, output, error output."""
        command = [*self.command, *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, errors="replace")
        return done.returncode, done.stdout, done.stderr

    def repeated(self, count: int) -> Sequence[str]:
        """Options that run it so often."""
        return "--warmup", str(WARMUP), "--repeat", str(count)

    def read(self, status: int, out: str, err: str) -> float:
        """Median seconds of a run, of what the program says."""
        found = _TIMES.search(out)
        if status != RIGHT or found is None:
            raise Failed(f"it ends with {status}: {_last(err) or _last(out)}")
        self.once = float(found.group(1)) * 1e-3
        return self.once

    def sample(self, least: float) -> float:
        """Median seconds of as many runs as take so long."""
        count = min(MOST, max(LEAST, round(least / max(self.once, 1e-6))))
        return self.read(*self.run(*self.repeated(count)))

    def free(self) -> None:
        """Nothing is held."""


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip()[:SAID] if lines else ""


def toolchain_of(where: Mapping[str, Sequence[str]]) -> str:
    """The vendor's compiler and what it says of its version; empty where there is none."""
    for path in _candidates(where):
        try:
            done = subprocess.run(
                [str(path), "--version"], capture_output=True, text=True, timeout=60, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return f"{path.name} ({(done.stdout.strip() or 'no version').splitlines()[0]})"
    return ""


def _candidates(where: Mapping[str, Sequence[str]]) -> Iterator[pathlib.Path]:
    """The places where the compiler is looked for, best first."""
    named = [os.environ.get(variable, "") for variable in where["variables"]]
    for root in [*filter(None, named), *where["roots"]]:
        for name in where["names"]:
            for within in where["within"]:
                yield from (path for path in sorted(pathlib.Path(root).glob(f"{within}/{name}")))
    for name in where["names"]:
        found = shutil.which(name)
        if found:
            yield pathlib.Path(found)
