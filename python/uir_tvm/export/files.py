# SPDX-License-Identifier: Apache-2.0
"""Names of a project's data files, and of what its texts call the buffers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from .device_program import HostProgram


def identifier(name: str, taken: Collection[str] = (), reserved: Collection[str] = ()) -> str:
    """A name as C++ and file systems take it, different from those that are taken."""
    plain = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:60] or "t"
    # two underscores in a row are the compiler's
    plain = re.sub(r"_+", "_", f"t_{plain}" if plain[0].isdigit() or plain in reserved else plain)
    unique, count = plain, 1
    while unique in taken:
        count += 1
        unique = f"{plain}_{count}"
    return unique


def identifiers(names: Iterable[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """An identifier for each name, in order."""
    found: dict[str, str] = {}
    for name in names:
        found[name] = identifier(name, set(found.values()), reserved)
    return found


def weight_files(program: HostProgram) -> dict[str, str]:
    """The file of every weight, by its buffer."""
    names = identifiers(buffer.name for buffer in program.weights)
    return {name: f"weights/{i:03d}_{plain}.bin" for i, (name, plain) in enumerate(names.items())}


def input_files(program: HostProgram) -> list[str]:
    """The file of every input, in a folder of inputs."""
    return [f"{plain}.bin" for plain in identifiers(spec.name for spec, _ in program.inputs).values()]


def output_files(program: HostProgram) -> list[str]:
    """The file of every output, in a folder of outputs."""
    return [f"{plain}.bin" for plain in identifiers(spec.name for spec, _ in program.outputs).values()]
