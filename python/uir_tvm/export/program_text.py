# SPDX-License-Identifier: Apache-2.0
"""Texts of a project that are alike for all devices: the model as C++, files that every project has."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs

from ..errors import ExportError
from ..sizes.symbolic_shapes import Size
from .arena import ALIGNMENT, ROUND, TAIL
from .device_program import (
    WEIGHT,
    Buffer,
    HostProgram,
    HostStep,
    KernelStep,
    LibraryStep,
    NodeSteps,
    Step,
    plain_size,
)
from .files import input_files, output_files, weight_files
from .open_library import times
from .open_sizes import item_bytes
from .program_names import ProgramNames
from .render import render, template
from .size_code import condition_code

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
        A launch, a call of the library -> lines of C++.
    """

    includes: Callable[[Sequence[str]], list[str]]
    launch: Callable[[KernelStep, ProgramNames], list[str]]
    call: Callable[[LibraryStep, ProgramNames], list[str]]


def files(program: HostProgram) -> Iterator[tuple[str, str]]:
    """Name and text of the files that all projects have: the command, functions of the host, open sizes."""
    yield from ((name, template(PACKAGE, FOLDER, name)) for name in (*SAME, *(HOST if program.host else ())))
    if program.open.names:
        fields = {"alignment": str(ALIGNMENT), "round": str(ROUND), "tail": str(TAIL)}
        yield "sizes.h", template(PACKAGE, FOLDER, "sizes.h")
        yield "sizes.cpp", render(template(PACKAGE, FOLDER, "sizes.cpp.in"), fields)
    yield from ((f"host/{name}.c", function.source) for name, function in program.host.items())


def launched(program: HostProgram) -> list[str]:
    """Names of the kernels that the program launches, whatever its sizes."""
    return sorted({step.function for step in program.every_step() if isinstance(step, KernelStep)})


def model(program: HostProgram, dialect: Dialect) -> str:
    """The file ``model.cpp``.

    Raises
    ------
    ExportError
        A dtype that no file of the project can hold.
    """
    from .. import __version__

    names = ProgramNames.of(program)
    files = weight_files(program)
    launches = launched(program)
    steps = list(program.steps())
    library = sum(isinstance(step, LibraryStep) for step in steps)
    parts = [program.groups[i : i + PART] for i in range(0, len(program.groups), PART)]
    given, made = (
        [(spec.name, file, spec.shape, spec.dtype, buffer) for (spec, buffer), file in rows]
        for rows in (
            zip(program.inputs, input_files(program), strict=True),
            zip(program.outputs, output_files(program), strict=True),
        )
    )
    inputs, outputs = (_tensors(rows, names) for rows in (given, made))
    open_sizes = bool(program.open.names)
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
            + ['#include "sizes.h"'] * open_sizes
        ),
        "host_functions": "".join(
            f'extern "C" int32_t __tvm_ffi_{name}(void* self, void* args, int32_t count, void* result);\n'
            for name in program.host
        ),
        "weight_bytes": str(program.constants.nbytes),
        "input_count": str(len(program.inputs)),
        "size_names": ", ".join(map(_quoted, program.open.names)),
        "plan": _plan_at_a_run(names) if open_sizes else _plan(program),
        "plan_of_inputs": "const Plan& plan" if open_sizes and inputs else "const Plan& /*plan*/",
        "plan_of_outputs": "const Plan& plan" if open_sizes and outputs else "const Plan& /*plan*/",
        "sizes_of_inputs": names.known(inputs, "plan.sizes"),
        "sizes_of_outputs": names.known(outputs, "plan.sizes"),
        "inputs": inputs,
        "outputs": outputs,
        "weights": _tensors(
            (
                (buffer.name, files[buffer.name], buffer.shape, buffer.dtype, buffer.name)
                for buffer in program.weights
            ),
            names,
            planned=True,
        ),
        "places": _numbers(names) if open_sizes else _places(names),
        "parts": "".join(_part(i, part, names, dialect) for i, part in enumerate(parts)),
        "calls": "\n".join(f"  Part{i}(device, storage);" for i in range(len(parts)))
        or "  static_cast<void>(device);\n  static_cast<void>(storage);",
    }
    return render(template(PACKAGE, FOLDER, "model.cpp.in"), fields)


def _places(names: ProgramNames) -> str:
    """Where buffers lie, as constants."""
    rows = "\n".join(
        f"constexpr Place {names.buffers[buffer.name]}"
        f"{{{_place(buffer, names.program)}, {_elements(buffer)}}};"
        f"  // {buffer.dtype} {_shape(buffer.shape)}"
        for buffer in names.program.buffers.values()
    )
    head = (
        "/*! Where every buffer lies. Buffers that are not needed at the same time share bytes"
        " of the arena. */"
    )
    return f"{head}\nnamespace at {{\n{rows}\n}}  // namespace at"


def _numbers(names: ProgramNames) -> str:
    """Numbers of buffers in the plan of a run."""
    rows = "\n".join(
        f"  {names.buffers[buffer.name]},  // {buffer.dtype} {_shape(buffer.shape)}"
        for buffer in _in_plan(names.program)
    )
    head = "/*! Every buffer, in the order of the plan: a run computes where they lie of its sizes. */"
    return f"{head}\nnamespace at {{\nenum Buffer : size_t {{\n{rows}\n}};\n}}  // namespace at"


def _in_plan(program: HostProgram) -> list[Buffer]:
    return [*(program.buffers[one.name] for one in program.lifetimes), *program.weights]


def _plan(program: HostProgram) -> str:
    assert program.arena is not None
    return f"Plan PlanFor(const Sizes& sizes) {{ return {{sizes, {program.arena.nbytes}, {{}}}}; }}"


def _plan_at_a_run(names: ProgramNames) -> str:
    """The function that checks sizes, and says where buffers lie."""
    program = names.program
    lines = [
        f"  Need({condition_code(text, names.sizes)}, {_quoted(text)}, sizes);"
        for text in program.open.conditions
    ]
    spans = ",".join(
        f"\n      {{{names.listed(program.buffers[one.name].shape)}, "
        f"{item_bytes(program.buffers[one.name].dtype)}, {one.first}, {one.last}}}"
        f" /* {names.buffers[one.name]} */"
        for one in program.lifetimes
    )
    fixed = ",".join(
        f"\n      {{{_place(buffer, program)}, {_elements(buffer)}}}" for buffer in program.weights
    )
    lines.append(f"  return Planned(sizes, {{{spans}}}, {{{fixed}}});")
    body = "\n".join(lines)
    return f"Plan PlanFor(const Sizes& sizes) {{\n{names.known(body, 'sizes')}{body}\n}}"


#: Name, file, shape, dtype, and the buffer that holds it.
Row = tuple[str, str, Sequence[Any], str, str]


def _tensors(rows: Iterable[Row], names: ProgramNames, planned: bool = False) -> str:
    """Tensors of files. Where sizes decide, the plan of a run has their places, but for what is `planned`."""
    lines, program = [], names.program
    for name, file, shape, dtype, buffer in rows:
        if dtype not in ELEMENTS:
            raise ExportError(
                f"`{name}` of `{program.name}` has the dtype {dtype}.",
                limit="projects read and write " + ", ".join(ELEMENTS),
                remedy="cast it in the model",
            )
        dims = names.listed(map(plain_size, shape))
        if program.open.names and not planned:
            place = f"plan.places[at::{names.buffers[buffer]}]"
            where = f"BytesOf({dims}, {item_bytes(dtype)}), {place}.region, {place}.offset"
        else:
            where = f"{program.buffers[buffer].nbytes}, {_place(program.buffers[buffer], program)}"
        lines.append(
            f"\n      {{{_quoted(name)}, {_quoted(file)}, Element::{ELEMENTS[dtype]}, {dims}, {where}}},"
        )
    return "".join(lines) + ("\n  " if lines else "")


def _quoted(text: str) -> str:
    """A C++ string; of ASCII, as JSON's escapes beyond are not C++'s in every place."""
    return json.dumps(text.encode("ascii", "replace").decode())


def _place(buffer: Buffer, program: HostProgram) -> str:
    if buffer.role == WEIGHT:
        return f"Region::kWeights, {program.constants.offsets[buffer.name]}"
    assert program.arena is not None
    return f"Region::kArena, {program.arena.offsets[buffer.name]}"


def _elements(buffer: Buffer) -> int:
    return math.prod(int(extent) for extent in buffer.shape)


def _shape(shape: Sequence[Size]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"


def _part(number: int, groups: Sequence[NodeSteps], names: ProgramNames, dialect: Dialect) -> str:
    body = []
    for group in groups:
        body.append("  // " + " ".join(group.title.encode("ascii", "replace").decode().split()))
        body.extend(_group(group, names, dialect))
    text = "\n".join(body)
    known = names.known(text, "storage.plan.sizes")
    return f"void Part{number}(Device& device, const Storage& storage) {{\n{known}{text}\n}}\n\n"


def _group(group: NodeSteps, names: ProgramNames, dialect: Dialect) -> list[str]:
    """The steps of a node; where it has variants, those of the first that is for the sizes of the run."""
    lines = [line for step in group.steps for line in _step(step, names, dialect)]
    if not group.variants:
        return lines
    body, word = [], "  if"
    for variant in group.variants:
        parts = [condition_code(text, names.sizes) for text in variant.conditions]
        body.append(f"{word} ({' && '.join(parts)}) {{")
        body += [f"  {line}" for step in variant.steps for line in _step(step, names, dialect)]
        word = "  } else if"
    return [*body, "  } else {", *(f"  {line}" for line in lines), "  }"]


def _step(step: Step, names: ProgramNames, dialect: Dialect) -> list[str]:
    if isinstance(step, KernelStep):
        return dialect.launch(step, names)
    return _on_host(step, names) if isinstance(step, HostStep) else dialect.call(step, names)


def _on_host(step: HostStep, names: ProgramNames) -> list[str]:
    tensors = []
    for name, (dtype, shape) in zip(step.operands, step.params, strict=True):
        code, bits = HOST_TYPES[dtype]
        dims = names.listed(shape)
        tensors.append(f"{{{names.at(name)}, {{{code}, {bits}, 1}}, {dims}}}")
    tensors[0] = "{" + tensors[0]
    tensors[-1] += "}"
    args = [f"__tvm_ffi_{step.function}", *tensors, str(step.inputs)]
    return wrapped("  RunOnHost(device, ", args, ");")


def contiguous(shape: Sequence[Size]) -> list[Size]:
    """Strides of a tensor in row-major order."""
    strides: list[Size] = []
    step: Size = 1
    for extent in reversed(shape):
        strides.append(step)
        step = times(step, extent)
    return strides[::-1]


def wrapped(head: str, args: Sequence[str], tail: str) -> list[str]:
    """A call on one line where it fits into 120 columns, else an argument on each further line."""
    line = head + ", ".join(args) + tail
    if len(line) <= 120:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    return [head.rstrip(), *(f"{indent}{arg}," for arg in args[:-1]), f"{indent}{args[-1]}{tail}"]
