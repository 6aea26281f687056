# SPDX-License-Identifier: Apache-2.0
"""Projects for Cambricon MLUs: kernels in BANG C, a host program on CNRT and CNNL, CMake that calls cncc."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import tvm_ffi

from ... import hardware
from ...export.files import identifiers, input_files, output_files
from ...export.host_program import Buffer, HostProgram, KernelStep, LibraryStep
from ...export.kinds import ProjectKind
from ...export.program_text import Dialect, files, host_section, launched, model, wrapped
from ...export.render import render, template
from ...library.attrs import Conv2dAttrs, MatmulAttrs
from . import project_names
from .toolkit import CNCC

#: Files of the runtime, which are the same in every project, and of the library where it is called.
SAME = ("device.h", "device.cpp")
LIBRARY = ("cnnl_calls.h", "cnnl_calls.cpp", "library.h")
#: Element types of CNNL.
TYPES = {"float32": "CNNL_DTYPE_FLOAT", "float16": "CNNL_DTYPE_HALF"}
#: The kernels of a text.
_KERNEL = re.compile(r"__mlu_entry__ void (\w+)\(([^)]*)\)")


def texts(program: HostProgram) -> Iterator[tuple[str, str]]:
    """Name and text of every file but data.

    Raises
    ------
    ExportError
        A dtype that no file of the project can hold.
    """
    library = any(isinstance(step, LibraryStep) for step in program.steps())
    yield from ((name, project_names.check(text, name)) for name, text in files(program))
    for name in (*SAME, *(LIBRARY if library else ())):
        yield name, project_names.check(template(__package__, "project", name), name)
    dialect = Dialect(_declarations(program), _launch, _call)
    yield "model.cpp", project_names.check(model(program, dialect), "model.cpp")
    kernels = sources(program)
    yield from ((f"kernels/{name}.mlu", text) for name, text in kernels.items())
    yield "CMakeLists.txt", _cmake(program, sorted(kernels), library)
    yield "run.sh", render(template(__package__, "project", "run.sh.in"), {"arch": arch(program)})
    yield "README.md", _readme(program, sorted(kernels))


def arch(program: HostProgram) -> str:
    """Number of the architecture that the kernels are printed for."""
    return str(hardware.get(program.hardware, "bang").figures["arch"])


def cncc(program: HostProgram) -> str:
    """The version of cncc that the kernels are printed for; the default's where there are none."""
    return CNCC.said_by(sources(program).values())


def kernels_of(source: str) -> dict[str, int]:
    """The kernels of a text, and how many tensors each takes."""
    found = _KERNEL.findall(source)
    return {name: len(params.split(",")) if params.strip() else 0 for name, params in found}


def sources(program: HostProgram) -> dict[str, str]:
    """Every text that has a kernel which is launched, by the name of its file."""
    wanted = set(launched(program))
    texts = {name: text for name, text in program.sources.items() if wanted & set(kernels_of(text))}
    names = identifiers(texts)
    return {names[name]: text for name, text in texts.items()}


def _declarations(program: HostProgram) -> Callable[[Sequence[str]], list[str]]:
    """The launchers of the texts; names of types matter to no linker."""
    counts = {name: n for text in sources(program).values() for name, n in kernels_of(text).items()}

    def lines(names: Sequence[str]) -> list[str]:
        return [
            f'extern "C" void {name}_launch(cnrtQueue_t queue{", void*" * counts[name]});' for name in names
        ]

    return lines


def _launch(step: KernelStep, names: dict[str, str]) -> list[str]:
    args = ["device.queue()", *(f"storage.At(at::{names[name]})" for name in step.operands)]
    return wrapped(f"  {step.function}_launch(", args, ");")


def _call(step: LibraryStep, program: HostProgram, names: dict[str, str]) -> list[str]:
    if step.kind == "matmul":
        return _product(step, program, names)
    assert step.kind == "conv2d", step
    conv = Conv2dAttrs.from_json(step.attrs)
    above, left, below, right = conv.padding
    assert (above, left) == (below, right) and not conv.bias and conv.residual == "none", conv
    buffers = [program.buffers[name] for name in (*step.operands, step.result)]
    images = []
    for buffer, shape in zip(buffers, (conv.input, conv.weight, conv.output), strict=True):
        images.append(f"Image{{storage.At(at::{names[buffer.name]}), {', '.join(map(str, shape))}}}")
    pairs = [", ".join(map(str, pair)) for pair in (conv.strides, (above, left), conv.dilation)]
    window = "Window{" + ", ".join(f"{{{pair}}}" for pair in pairs) + f", {conv.groups}}}"
    args = [TYPES[buffers[0].dtype], images[0], images[1], window, images[2]]
    return wrapped("  LibraryOf(device).Convolution(", args, ");")


def _product(step: LibraryStep, program: HostProgram, names: dict[str, str]) -> list[str]:
    attributes = MatmulAttrs.from_json(step.attrs)
    rows = tvm_ffi.get_global_func("uir.library.bang.product")(attributes.to_json())
    buffers = [program.buffers[name] for name in (*step.operands, step.result)]
    views = [_view(buffer, row, names) for buffer, row in zip(buffers, rows, strict=True)]
    return wrapped("  LibraryOf(device).Product(", [f"{float(attributes.alpha)!r}F", *views], ");")


def _view(buffer: Buffer, row: Mapping[str, Any], names: dict[str, str]) -> str:
    dims, steps = (", ".join(str(int(n)) for n in row[key]) for key in ("shape", "strides"))
    offset = f", {int(row['offset'])}" if int(row["offset"]) else ""
    return (
        f"View(storage.At(at::{names[buffer.name]}), {TYPES[buffer.dtype]}, {{{dims}}}, {{{steps}}}{offset})"
    )


def _cmake(program: HostProgram, kernels: Sequence[str], library: bool) -> str:
    fields = {
        "project": identifiers([program.name])[program.name],
        "arch": arch(program),
        "cncc": cncc(program),
        "more_sources": (" cnnl_calls.cpp" if library else "")
        + (" host.cpp" if program.host else "")
        + "".join(f"\n               host/{name}.c" for name in program.host),
        "kernels": "".join(f"\n    {name}" for name in kernels),
        "library_link": " cnnl" if library else "",
    }
    return render(template(__package__, "project", "CMakeLists.txt.in"), fields)


def _readme(program: HostProgram, kernels: Sequence[str]) -> str:
    def rows(specs: Iterable[tuple[object, str]]) -> str:
        return "\n".join(f"    {name:24} {spec}" for spec, name in specs)

    steps = list(program.steps())
    fields = {
        "name": program.name,
        "arch": arch(program),
        "cncc": cncc(program),
        "toolkit": CNCC.needs[cncc(program)],
        "hardware": program.hardware,
        "inputs": rows(zip((spec for spec, _ in program.inputs), input_files(program), strict=True)),
        "outputs": rows(zip((spec for spec, _ in program.outputs), output_files(program), strict=True)),
        "launches": str(sum(isinstance(step, KernelStep) for step in steps)),
        "kernels": str(len(kernels)),
        "library_calls": str(sum(isinstance(step, LibraryStep) for step in steps)),
        "arena": f"{program.arena.nbytes / 2**20:.2f}",
        "weights": f"{program.constants.nbytes / 2**20:.2f}",
        "host": host_section(program),
    }
    return render(template(__package__, "project", "README.md.in"), fields)


PROJECT = ProjectKind("uir-bang", "Cambricon Neuware", texts, frozenset({"run.sh"}))
