# SPDX-License-Identifier: Apache-2.0
"""Projects for Ascend devices: kernels in Ascend C, a host program on ACL and aclnn, CMake of CANN."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from ..errors import ExportError
from ..library.attrs import Conv2dAttrs, MatmulAttrs
from . import ascend_api
from .aclnn import Operand, convolution, products
from .files import identifiers, input_files, output_files, weight_files
from .host_program import WEIGHT, Buffer, Group, HostProgram, HostStep, KernelStep, LibraryStep, Step
from .render import render, template

KIND = "ascend"
#: Files that are the same in every project; those of the library and of the host where they are needed.
SAME, LIBRARY = ("main.cpp", "device.h", "device.cpp", "model.h"), ("library.h", "library.cpp")
HOST = ("host.h", "host.cpp", "tvm_c.h")
#: Element types: of files and of aclnn.
ELEMENTS = {
    "float32": ("kFloat32", "ACL_FLOAT"),
    "float16": ("kFloat16", "ACL_FLOAT16"),
    "bfloat16": ("kBfloat16", "ACL_BF16"),
    "int8": ("kInt8", "ACL_INT8"),
    "uint8": ("kUint8", "ACL_UINT8"),
    "bool": ("kBool", "ACL_BOOL"),
    "int32": ("kInt32", "ACL_INT32"),
    "int64": ("kInt64", "ACL_INT64"),
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
#: Where a kernel begins in a text that holds several.
_KERNEL = re.compile(r'^extern "C" __global__', re.MULTILINE)


def texts(program: HostProgram) -> Iterator[tuple[str, str]]:
    """Name and text of every file but data.

    Raises
    ------
    ExportError
        A dtype that no file of the project can hold.
    """
    library = any(isinstance(step, LibraryStep) for step in program.steps())
    for name in (*SAME, *(LIBRARY if library else ()), *(HOST if program.host else ())):
        yield name, ascend_api.check(template(KIND, name), name)
    yield "model.cpp", ascend_api.check(_model(program), "model.cpp")
    kernels = dict(_kernels(program))
    yield from ((f"kernels/{name}.cpp", text) for name, text in kernels.items())
    yield from ((f"host/{name}.c", function.source) for name, function in program.host.items())
    yield "CMakeLists.txt", _cmake(program, sorted(kernels), library)
    yield "run.sh", render(template(KIND, "run.sh.in"), {"soc": soc(program.hardware)})
    yield "README.md", _readme(program, sorted(kernels))


def soc(hardware: str) -> str:
    """The toolkit's name of a hardware model: ``910b2`` -> ``Ascend910B2``."""
    return f"Ascend{hardware.upper()}"


def _kernels(program: HostProgram) -> Iterator[tuple[str, str]]:
    """Every kernel and the text of its file: the toolkit's CMake takes one kernel in a file."""
    launched = {step.function for step in program.steps() if isinstance(step, KernelStep)}
    for name, source in program.sources.items():
        found = split(source)
        if launched.isdisjoint(found):
            continue
        for kernel, text in found.items():
            assert kernel in launched, (name, kernel)
            yield kernel, text


def split(source: str) -> dict[str, str]:
    """The kernels of a text, each with what stands before the first; a text of one kernel stays as it is."""
    starts = [match.start() for match in _KERNEL.finditer(source)]
    names = [re.search(r"(\w+)\s*\(", source[start:].partition("__aicore__")[2]) for start in starts]
    kernels = [match[1] for match in names if match]
    assert len(kernels) == len(starts) > 0, source[:200]
    if len(starts) == 1:
        return {kernels[0]: source}
    # a kernel's comment stands right above it
    borders = [source.rfind("\n\n", 0, start) + 2 for start in starts] + [len(source)]
    head = source[: borders[0]]
    return {name: head + source[borders[i] : borders[i + 1]] for i, name in enumerate(kernels)}


def _cmake(program: HostProgram, kernels: Sequence[str], library: bool) -> str:
    listed = "".join(f"\n  kernels/{name}.cpp" for name in kernels)
    link = (
        "# Since CANN 9 the operator library is several files.\n"
        'if(EXISTS "${ASCEND_CANN_PACKAGE_PATH}/lib64/libopapi_nn.so")\n'
        "  target_link_libraries(model PRIVATE opapi_nn opapi_math)\n"
        "else()\n"
        "  target_link_libraries(model PRIVATE opapi)\n"
        "endif()"
    )
    fields = {
        "project": identifiers([program.name])[program.name],
        "soc": soc(program.hardware),
        "more_sources": (" library.cpp" if library else "")
        + "".join(f"\n               {file}" for file in (["host.cpp"] if program.host else []))
        + "".join(f"\n               host/{name}.c" for name in program.host),
        "kernels": f"ascendc_library(kernels STATIC{listed})\ntarget_link_libraries(model PRIVATE kernels)"
        if kernels
        else "# The model has no kernels of its own.",
        "library_link": link if library else "# The model calls no operator of the library.",
    }
    return render(template(KIND, "CMakeLists.txt.in"), fields)


def _readme(program: HostProgram, kernels: Sequence[str]) -> str:
    def rows(specs: Iterable[tuple[object, str]]) -> str:
        return "\n".join(f"    {name:24} {spec}" for spec, name in specs)

    steps = list(program.steps())
    launches = [step for step in steps if isinstance(step, KernelStep)]
    fields = {
        "name": program.name,
        "soc": soc(program.hardware),
        "hardware": program.hardware,
        "inputs": rows(zip((spec for spec, _ in program.inputs), input_files(program), strict=True)),
        "outputs": rows(zip((spec for spec, _ in program.outputs), output_files(program), strict=True)),
        "launches": str(len(launches)),
        "kernels": str(len(kernels)),
        "library_calls": str(sum(isinstance(step, LibraryStep) for step in steps)),
        "arena": f"{program.arena.nbytes / 2**20:.2f}",
        "weights": f"{program.constants.nbytes / 2**20:.2f}",
        "host": _host_section(program),
        "blocks": ", ".join(map(str, sorted({step.blocks for step in launches}))) or "none",
    }
    return render(template(KIND, "README.md.in"), fields)


def _host_section(program: HostProgram) -> str:
    """What the README says of functions that run on the host."""
    if not program.host:
        return ""
    rows = "\n".join(f"- `{name}`: {function.reason}" for name, function in program.host.items())
    return (
        "\n## On the host\n\n"
        "The device does not take these functions. They are C (`host/*.c`): a run waits for the device and\n"
        "copies their tensors to the host and back. Each costs far more than a launch.\n\n" + rows + "\n"
    )


def _model(program: HostProgram) -> str:
    from .. import __version__

    names = identifiers(program.buffers, RESERVED)
    files = weight_files(program)
    launches = sorted({step.function for step in program.steps() if isinstance(step, KernelStep)})
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
            [f'#include "aclrtlaunch_{name}.h"' for name in launches]
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
        "parts": "".join(_part(i, part, program, names) for i, part in enumerate(parts)),
        "calls": "\n".join(f"  Part{i}(device, storage);" for i in range(len(parts)))
        or "  static_cast<void>(device);\n  static_cast<void>(storage);",
    }
    return render(template(KIND, "model.cpp.in"), fields)


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
            f"\n      {{{_quoted(name)}, {_quoted(file)}, Element::{ELEMENTS[dtype][0]}, {{{dims}}}, "
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


def _part(number: int, groups: Sequence[Group], program: HostProgram, names: dict[str, str]) -> str:
    body = []
    for group in groups:
        body.append("  // " + " ".join(group.title.encode("ascii", "replace").decode().split()))
        for step in group.steps:
            body.extend(_step(step, program, names))
    text = "\n".join(body)
    return f"void Part{number}(Device& device, const Storage& storage) {{\n{text}\n}}\n\n"


def _step(step: Step, program: HostProgram, names: dict[str, str]) -> list[str]:
    if isinstance(step, KernelStep):
        return _launch(step, names)
    return _on_host(step, names) if isinstance(step, HostStep) else _call(step, program, names)


def _on_host(step: HostStep, names: dict[str, str]) -> list[str]:
    tensors = []
    for name, (dtype, shape) in zip(step.operands, step.params, strict=True):
        code, bits = HOST_TYPES[dtype]
        dims = ", ".join(map(str, shape))
        tensors.append(f"{{storage.At(at::{names[name]}), {{{code}, {bits}, 1}}, {{{dims}}}}}")
    tensors[0] = "{" + tensors[0]
    tensors[-1] += "}"
    args = [f"__tvm_ffi_{step.function}", *tensors, str(step.inputs)]
    return _wrapped("  RunOnHost(device, ", args, ");")


def _launch(step: KernelStep, names: dict[str, str]) -> list[str]:
    args = [
        str(step.blocks),
        "device.stream()",
        *(f"storage.At(at::{names[name]})" for name in step.operands),
    ]
    return _wrapped(f"  CHECK_ACL(ACLRT_LAUNCH_KERNEL({step.function})(", args, "));")


def _call(step: LibraryStep, program: HostProgram, names: dict[str, str]) -> list[str]:
    if step.kind == "matmul":
        return _product(step, program, names)
    assert step.kind == "conv2d", step
    conv = convolution(Conv2dAttrs.from_json(step.attrs))
    buffers = [program.buffers[name] for name in (*step.operands, step.result)]
    views = []
    for buffer, shape in zip(buffers, conv.shapes, strict=True):
        form = "ACL_FORMAT_NCHW" if len(shape) == 4 else "ACL_FORMAT_ND"
        views.append(_view(buffer, shape, _contiguous(shape), 0, names, form))
    numbers = ", ".join(
        "{" + ", ".join(map(str, values)) + "}" for values in (conv.stride, conv.padding, conv.dilation)
    )
    bias = len(views) == 4
    lines = [f"  {{\n    const View bias = {views[2]};"] if bias else []
    args = [views[0], views[1], "&bias" if bias else "nullptr", f"{{{numbers}, {conv.groups}}}", views[-1]]
    indent = "    " if bias else "  "
    lines += _wrapped(f"{indent}Convolution(device, ", args, ");")
    return [*lines, "  }"] if bias else lines


def _product(step: LibraryStep, program: HostProgram, names: dict[str, str]) -> list[str]:
    attributes = MatmulAttrs.from_json(step.attrs)
    roles = ["a", "b"] + ["bias"] * attributes.bias + ["residual"] * (attributes.residual != "none") + ["out"]
    buffers = dict(zip(roles, (program.buffers[name] for name in (*step.operands, step.result)), strict=True))

    def view(operand: Operand) -> str:
        return _view(buffers[operand.role], operand.shape, operand.strides, operand.offset, names)

    lines = []
    for call in products(attributes):
        lines += _wrapped(f"  {call.function}(device, ", [view(operand) for operand in call.operands], ");")
    return lines


def _view(
    buffer: Buffer,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
    names: dict[str, str],
    form: str = "ACL_FORMAT_ND",
) -> str:
    place = f"at::{names[buffer.name]}"
    dims, steps = (", ".join(map(str, values)) for values in (shape, strides))
    more = f", {offset}" if offset or form != "ACL_FORMAT_ND" else ""
    more += f", {form}" if form != "ACL_FORMAT_ND" else ""
    kind = ELEMENTS[buffer.dtype][1]
    return f"View(storage.At({place}), {place}.elements, {kind}, {{{dims}}}, {{{steps}}}{more})"


def _contiguous(shape: Sequence[int]) -> list[int]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]


def _wrapped(head: str, args: Sequence[str], tail: str) -> list[str]:
    """A call on one line where it fits into 120 columns, else an argument on each further line."""
    line = head + ", ".join(args) + tail
    if len(line) <= 120:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()) + 4)
    return [head.rstrip(), *(f"{indent}{arg}," for arg in args[:-1]), f"{indent}{args[-1]}{tail}"]
