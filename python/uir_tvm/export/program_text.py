# SPDX-License-Identifier: Apache-2.0
"""Texts of a project that are alike for all devices: the model as C++, files that every project has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from ..errors import ExportError
from .files import identifiers, input_files, output_files, weight_files
from .host_program import WEIGHT, Buffer, HostProgram, HostStep, KernelStep, LibraryStep, NodeSteps, Step
from .render import render, template

#: The package and the folder of templates.
PACKAGE, FOLDER = "uir_tvm.export", "program"
#: Files that are the same in every project, and those of the host where they are needed.
SAME, HOST = ("main.cpp", "model.h"), ("host.h", "host.cpp", "tvm_c.h")
#: Element types of files.
ELEMENTS = {
    "float32": "kFloat32",
    "float16": "kFloat16",
    "bfloat16": "kBfloat16",
    "int8": "kInt8",
    "uint8": "kUint8",
    "bool": "kBool",
    "int32": "kInt32",
    "int64": "kInt64",
}
#: Code and bits of element types, as DLPack numbers them.
HOST_TYPES = {
    "float32": (2, 32),
    "float64": (2, 64),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "uint64": (1, 64),
    "bool": (6, 8),
}
#: Names that a buffer cannot have in the program's text.
RESERVED = frozenset(
    "device storage stream and or not auto bool char class const do double else enum float for if int"
    " long new return short this true false void while register default switch union".split()
)
#: Groups of one function of the program: a compiler takes long functions slowly.
PART = 40


@attrs.frozen
class Dialect:
    """What a device's own language is, within the text of a model.

    Parameters
    ----------
    includes : callable
        Names of the kernels launched -> lines that declare their launches.
    launch, call : callable
        A launch, a call of the library -> lines of C++; they are given the identifiers of buffers.
    """

    includes: Callable[[Sequence[str]], list[str]]
    launch: Callable[[KernelStep, dict[str, str]], list[str]]
    call: Callable[[LibraryStep, HostProgram, dict[str, str]], list[str]]


def files(program: HostProgram) -> Iterator[tuple[str, str]]:
    """Name and text of the files that all projects have: the command, and functions of the host."""
    yield from ((name, template(PACKAGE, FOLDER, name)) for name in (*SAME, *(HOST if program.host else ())))
    yield from ((f"host/{name}.c", function.source) for name, function in program.host.items())


def launched(program: HostProgram) -> list[str]:
    """Names of the kernels that the program launches."""
    return sorted({step.function for step in program.steps() if isinstance(step, KernelStep)})


def model(program: HostProgram, dialect: Dialect) -> str:
    """The file ``model.cpp``.

    Raises
    ------
    ExportError
        A dtype that no file of the project can hold.
    """
    from .. import __version__

    names = identifiers(program.buffers, RESERVED)
    files = weight_files(program)
    launches = launched(program)
    steps = list(program.steps())
    library = sum(isinstance(step, LibraryStep) for step in steps)
    parts = [program.groups[i : i + PART] for i in range(0, len(program.groups), PART)]
    fields = {
        "name": program.name,
        "hardware": program.hardware,
        "version": __version__,
        "kernel_launches": str(sum(isinstance(step, KernelStep) for step in steps)),
        "kernel_count": str(len(launches)),
        "library_calls": str(library),
        "includes": "\n".join(
            dialect.includes(launches)
            + ['#include "host.h"'] * bool(program.host)
            + ['#include "library.h"'] * bool(library)
        ),
        "host_functions": "".join(
            f'extern "C" int32_t __tvm_ffi_{name}(void* self, void* args, int32_t count, void* result);\n'
            for name in program.host
        ),
        "arena_bytes": str(program.arena.nbytes),
        "weight_bytes": str(program.constants.nbytes),
        "inputs": _tensors(
            (spec.name, file, program.buffers[buffer], spec.shape, spec.dtype, program)
            for (spec, buffer), file in zip(program.inputs, input_files(program), strict=True)
        ),
        "outputs": _tensors(
            (spec.name, file, program.buffers[buffer], spec.shape, spec.dtype, program)
            for (spec, buffer), file in zip(program.outputs, output_files(program), strict=True)
        ),
        "weights": _tensors(
            (buffer.name, files[buffer.name], buffer, buffer.shape, buffer.dtype, program)
            for buffer in program.weights
        ),
        "places": "\n".join(
            f"constexpr Place {names[buffer.name]}{{{_place(buffer, program)}, {_elements(buffer)}}};"
            f"  // {buffer.dtype} {_shape(buffer.shape)}"
            for buffer in program.buffers.values()
        ),
        "parts": "".join(_part(i, part, program, names, dialect) for i, part in enumerate(parts)),
        "calls": "\n".join(f"  Part{i}(device, storage);" for i in range(len(parts)))
        or "  static_cast<void>(device);\n  static_cast<void>(storage);",
    }
    return render(template(PACKAGE, FOLDER, "model.cpp.in"), fields)


def _tensors(rows: Iterable[tuple[str, str, Buffer, tuple[int, ...], str, HostProgram]]) -> str:
    lines = []
    for name, file, buffer, shape, dtype, program in rows:
        if dtype not in ELEMENTS:
            raise ExportError(
                f"`{name}` of `{program.name}` has the dtype {dtype}.",
                limit="projects read and write " + ", ".join(ELEMENTS),
                remedy="cast it in the model",
            )
        dims = ", ".join(map(str, shape))
        lines.append(
            f"\n      {{{_quoted(name)}, {_quoted(file)}, Element::{ELEMENTS[dtype]}, {{{dims}}}, "
            f"{buffer.nbytes}, {_place(buffer, program)}}},"
        )
    return "".join(lines) + ("\n  " if lines else "")


def _quoted(text: str) -> str:
    """A C++ string; of ASCII, as JSON's escapes beyond are not C++'s in every place."""
    return json.dumps(text.encode("ascii", "replace").decode())


def _place(buffer: Buffer, program: HostProgram) -> str:
    if buffer.role == WEIGHT:
        return f"Region::kWeights, {program.constants.offsets[buffer.name]}"
    return f"Region::kArena, {program.arena.offsets[buffer.name]}"


def _elements(buffer: Buffer) -> int:
    count = 1
    for extent in buffer.shape:
        count *= extent
    return count


def _shape(shape: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"


def _part(
    number: int, groups: Sequence[NodeSteps], program: HostProgram, names: dict[str, str], dialect: Dialect
) -> str:
    body = []
    for group in groups:
        body.append("  // " + " ".join(group.title.encode("ascii", "replace").decode().split()))
        for step in group.steps:
            body.extend(_step(step, program, names, dialect))
    text = "\n".join(body)
    return f"void Part{number}(Device& device, const Storage& storage) {{\n{text}\n}}\n\n"


def _step(step: Step, program: HostProgram, names: dict[str, str], dialect: Dialect) -> list[str]:
    if isinstance(step, KernelStep):
        return dialect.launch(step, names)
    return _on_host(step, names) if isinstance(step, HostStep) else dialect.call(step, program, names)


def _on_host(step: HostStep, names: dict[str, str]) -> list[str]:
    tensors = []
    for name, (dtype, shape) in zip(step.operands, step.params, strict=True):
        code, bits = HOST_TYPES[dtype]
        dims = ", ".join(map(str, shape))
        tensors.append(f"{{storage.At(at::{names[name]}), {{{code}, {bits}, 1}}, {{{dims}}}}}")
    tensors[0] = "{" + tensors[0]
    tensors[-1] += "}"
    args = [f"__tvm_ffi_{step.function}", *tensors, str(step.inputs)]
    return wrapped("  RunOnHost(device, ", args, ");")


def contiguous(shape: Sequence[int]) -> list[int]:
    """Strides of a tensor in row-major order."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


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


def wrapped(head: str, args: Sequence[str], tail: str) -> list[str]:
    """A call on one line where it fits into 120 columns, else an argument on each further line."""
    line = head + ", ".join(args) + tail
    if len(line) <= 120:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    return [head.rstrip(), *(f"{indent}{arg}," for arg in args[:-1]), f"{indent}{args[-1]}{tail}"]
