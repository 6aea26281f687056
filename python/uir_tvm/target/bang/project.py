# SPDX-License-Identifier: Apache-2.0
"""Projects for Cambricon MLUs: kernels in BANG C, a host program on CNRT and CNNL, CMake that calls cncc."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import tvm_ffi

from ... import hardware
from ...export.device_program import HostProgram, KernelStep, LibraryStep
from ...export.files import identifiers, input_files, output_files
from ...export.kinds import ProjectKind
from ...export.open_library import SizedProduct, convolution_shapes, is_open
from ...export.program_names import ProgramNames
from ...export.program_text import Dialect, files, launched, model, wrapped
from ...export.readme_text import host_section, memory_text, sizes_section
from ...export.render import render, template
from ...library.attrs import Conv2dAttrs, MatmulAttrs
from ...library.integer_matmul_attrs import IntegerMatmulAttrs
from ...library.sized import in_numbers
from ...sizes.symbolic_shapes import Size
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


def kernels_of(source: str) -> dict[str, tuple[str, ...]]:
    """The kernels of a text, and what each takes: addresses (``void*``), then sizes (``int64_t``)."""
    found = {}
    for name, params in _KERNEL.findall(source):
        listed = [param for param in params.split(",") if param.strip()]
        found[name] = tuple("void*" if "*" in param else param.split()[0] for param in listed)
    return found


def sources(program: HostProgram) -> dict[str, str]:
    """Every text that has a kernel which is launched, by the name of its file."""
    wanted = set(launched(program))
    texts = {name: text for name, text in program.sources.items() if wanted & set(kernels_of(text))}
    names = identifiers(texts)
    return {names[name]: text for name, text in texts.items()}


def _declarations(program: HostProgram) -> Callable[[Sequence[str]], list[str]]:
    """The launchers of the texts; what an address points at matters to no linker."""
    taken = {name: types for text in sources(program).values() for name, types in kernels_of(text).items()}

    def lines(names: Sequence[str]) -> list[str]:
        return [
            f'extern "C" void {name}_launch({", ".join(["cnrtQueue_t queue", *taken[name]])});'
            for name in names
        ]

    return lines


def _launch(step: KernelStep, names: ProgramNames) -> list[str]:
    def call(blocks: str) -> list[str]:
        args = ["device.queue()", *map(names.at, step.operands), *map(names.size, step.sizes)]
        return wrapped(f"  {step.function}_launch(", args, ");")

    if step.groups == "":
        return call("")
    # the launcher of the text says how many tasks there are
    return [f"  if ({names.size(step.groups)} > 0) {{", *(f"  {line}" for line in call("")), "  }"]


def _call(step: LibraryStep, names: ProgramNames) -> list[str]:
    if step.kind == "matmul":
        return _product(step, names)
    if step.kind == "integer_matmul":
        return _integer_product(step, names)
    assert step.kind == "conv2d", step
    conv = Conv2dAttrs.from_json(in_numbers(step.kind, step.attrs, names.program.open.usual))
    above, left, below, right = conv.padding
    assert (above, left) == (below, right) and not conv.bias and conv.residual == "none", conv
    buffers = (*step.operands, step.result)
    shapes = convolution_shapes(step.attrs) if is_open(step.attrs) else (conv.input, conv.weight, conv.output)
    images = []
    for buffer, shape in zip(buffers, shapes, strict=True):
        images.append(f"Image{{{names.at(buffer)}, {_ints(shape, names)}}}")
    pairs = [", ".join(map(str, pair)) for pair in (conv.strides, (above, left), conv.dilation)]
    window = "Window{" + ", ".join(f"{{{pair}}}" for pair in pairs) + f", {conv.groups}}}"
    kind = TYPES[names.program.buffers[step.result].dtype]
    args = [kind, images[0], images[1], window, images[2]]
    return wrapped("  LibraryOf(device).Convolution(", args, ");")


def _product(step: LibraryStep, names: ProgramNames) -> list[str]:
    attributes = MatmulAttrs.from_json(in_numbers(step.kind, step.attrs, names.program.open.usual))
    rows = tvm_ffi.get_global_func("uir.library.bang.product")(attributes.to_json())
    if is_open(step.attrs):
        product = SizedProduct.of(step.attrs)
        rows = [attrs.asdict(product.view(role, product.batch)) for role in product.roles]
    views = [
        _view(buffer, row, names) for buffer, row in zip((*step.operands, step.result), rows, strict=True)
    ]
    return wrapped("  LibraryOf(device).Product(", [f"{float(attributes.alpha)!r}F", *views], ");")


def _integer_product(step: LibraryStep, names: ProgramNames) -> list[str]:
    """Products of int8: matrices that lie by rows, the second ones by the result's columns."""
    known = IntegerMatmulAttrs.from_json(in_numbers(step.kind, step.attrs, names.program.open.usual))
    rows: Size = json.loads(step.attrs)["m"]
    sizes = f"Matrices{{{_ints((known.parts, rows, known.n, known.k), names)}}}"
    buffers = map(names.at, (*step.operands, step.result))
    return wrapped("  LibraryOf(device).IntegerProduct(", [*buffers, sizes], ");")


def _view(buffer: str, row: Mapping[str, Any], names: ProgramNames) -> str:
    dims, steps = (_ints(row[key], names) for key in ("shape", "strides"))
    offset = f", {names.size(row['offset'])}" if row["offset"] != 0 else ""
    kind = TYPES[names.program.buffers[buffer].dtype]
    return f"View({names.at(buffer)}, {kind}, {{{dims}}}, {{{steps}}}{offset})"


def _ints(sizes: Iterable[Size], names: ProgramNames) -> str:
    """Sizes as CNNL takes them, of 32 bits."""
    return ", ".join(f"Int({names.size(size)})" if isinstance(size, str) else str(size) for size in sizes)


def _cmake(program: HostProgram, kernels: Sequence[str], library: bool) -> str:
    fields = {
        "project": identifiers([program.name])[program.name],
        "arch": arch(program),
        "cncc": cncc(program),
        "more_sources": (" cnnl_calls.cpp" if library else "")
        + (" sizes.cpp" if program.open.names else "")
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
        "arena": memory_text(program),
        "weights": f"{program.constants.nbytes / 2**20:.2f}",
        "host": sizes_section(program) + host_section(program),
    }
    return render(template(__package__, "project", "README.md.in"), fields)


PROJECT = ProjectKind("uir-bang", "Cambricon Neuware", texts, frozenset({"run.sh"}))
