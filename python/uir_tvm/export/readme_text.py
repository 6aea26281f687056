# SPDX-License-Identifier: Apache-2.0
"""What the README of every project says of its memory, its sizes and its host."""

from __future__ import annotations

from .device_program import HostProgram


def memory_text(program: HostProgram) -> str:
    """How large the arena is, for the README."""
    if program.arena is None:
        return "as large as the sizes of a run need"
    return f"{program.arena.nbytes / 2**20:.2f} MiB"


def sizes_section(program: HostProgram) -> str:
    """What the README says of sizes that are known at a run."""
    if not program.open.names:
        return ""
    named = ", ".join(f"`{name}`" for name in program.open.names)
    given = " ".join(f"--size {name}=37" for name in program.open.names)
    rows = "\n".join(f"- `{text}`" for text in program.open.conditions)
    return (
        "\n## Sizes\n\n"
        f"The model leaves {named} open. Files have no shapes, so say what your inputs have:\n\n"
        f"    ./run.sh {given} --output results INPUT.bin ...\n\n"
        "`check/sizes.txt` has those of `check/inputs`. Before anything runs, the program checks that\n\n"
        f"{rows}\n\n"
        "and that each file has as many bytes as its shape. Grids, views of library calls, workspaces and\n"
        "places of buffers follow the sizes (`PlanFor` in `model.cpp`, `sizes.*`); kernels take them as\n"
        "arguments.\n" + _variants(program)
    )


def _variants(program: HostProgram) -> str:
    """What it says of kernels for some sizes."""
    asked = dict.fromkeys(
        " and ".join(variant.conditions) for group in program.groups for variant in group.variants
    )
    if not asked:
        return ""
    rows = "\n".join(f"- `{text}`" for text in asked)
    return f"\nSome kernels have others in their place (`if` in `model.cpp`) where\n\n{rows}\n"


def host_section(program: HostProgram) -> str:
    """What the README says of functions that run on the host."""
    if not program.host:
        return ""
    rows = "\n".join(f"- `{name}`: {function.reason}" for name, function in program.host.items())
    return (
        "\n## On the host\n\n"
        "The device does not take these functions. They are C (`host/*.c`): a run waits for the device and\n"
        "copies their tensors to the host and back. Each costs far more than a launch.\n\n" + rows + "\n"
    )
