# SPDX-License-Identifier: Apache-2.0
"""Projects for Ascend devices: kernels in Ascend C, a host program on ACL and aclnn, CMake of CANN."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from ...export.device_program import HostProgram, KernelStep, LibraryStep
from ...export.files import identifiers, input_files, output_files
from ...export.kinds import ProjectKind
from ...export.open_library import SizedProduct, convolution_shapes, is_open, plus, times
from ...export.program_names import ProgramNames
from ...export.program_text import Dialect, contiguous, files, launched, model, wrapped
from ...export.readme_text import host_section, memory_text, sizes_section
from ...export.render import render, template
from ...library.attrs import Conv2dAttrs, MatmulAttrs
from ...library.integer_matmul_attrs import IntegerMatmulAttrs
from ...library.sized import in_numbers
from ...sizes.symbolic_shapes import Size
from . import project_names
from .aclnn import Operand, convolution, products
from .toolkit import CANN

#: Files of the runtime, which are the same in every project, and of the library where it is called.
SAME, LIBRARY = ("device.h", "device.cpp"), ("library.h", "library.cpp")
#: The file of products of bytes, which models without them do without: older toolkits do not have its header.
QUANT, QUANT_NEEDS = "quant_matmul.cpp", "CANN 8.0 or later"
#: The kind of a step that is a product of bytes.
INTEGER = "integer_matmul"
#: Element types of aclnn.
TYPES = {
    "float32": "ACL_FLOAT",
    "float16": "ACL_FLOAT16",
    "bfloat16": "ACL_BF16",
    "int8": "ACL_INT8",
    "uint8": "ACL_UINT8",
    "bool": "ACL_BOOL",
    "int32": "ACL_INT32",
    "int64": "ACL_INT64",
}
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
    quant = (QUANT,) if _multiplies_bytes(program) else ()
    yield from ((name, project_names.check(text, name)) for name, text in files(program))
    for name in (*SAME, *(LIBRARY if library else ()), *quant):
        yield name, project_names.check(template(__package__, "project", name), name)
    dialect = Dialect(lambda names: [f'#include "aclrtlaunch_{name}.h"' for name in names], _launch, _call)
    yield "model.cpp", project_names.check(model(program, dialect), "model.cpp")
    kernels = dict(_kernels(program))
    yield from ((f"kernels/{name}.cpp", text) for name, text in kernels.items())
    yield "CMakeLists.txt", _cmake(program, sorted(kernels), library)
    yield "run.sh", render(template(__package__, "project", "run.sh.in"), {"soc": soc(program.hardware)})
    yield "README.md", _readme(program, sorted(kernels))


def _multiplies_bytes(program: HostProgram) -> bool:
    return any(isinstance(step, LibraryStep) and step.kind == INTEGER for step in program.steps())


def _needs(program: HostProgram) -> str:
    """The toolkits that a project builds with."""
    version = cann(program)
    first = version == CANN.default and _multiplies_bytes(program)
    return QUANT_NEEDS if first else CANN.needs[version]


def soc(hardware: str) -> str:
    """The toolkit's name of a hardware model: ``910b2`` -> ``Ascend910B2``."""
    return f"Ascend{hardware.upper()}"


def cann(program: HostProgram) -> str:
    """The version of CANN that the kernels are printed for; the default's where there are none."""
    return CANN.said_by(text for _, text in _kernels(program))


def _kernels(program: HostProgram) -> Iterator[tuple[str, str]]:
    """Every kernel and the text of its file: the toolkit's CMake takes one kernel in a file."""
    wanted = set(launched(program))
    for name, source in program.sources.items():
        found = split(source)
        if wanted.isdisjoint(found):
            continue
        for kernel, text in found.items():
            assert kernel in wanted, (name, kernel)
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
        "cann": cann(program),
        "least": _needs(program).split()[1],
        "more_sources": (" library.cpp" if library else "")
        + (f" {QUANT}" if _multiplies_bytes(program) else "")
        + (" sizes.cpp" if program.open.names else "")
        + "".join(f"\n               {file}" for file in (["host.cpp"] if program.host else []))
        + "".join(f"\n               host/{name}.c" for name in program.host),
        "kernels": f"ascendc_library(kernels STATIC{listed})\ntarget_link_libraries(model PRIVATE kernels)"
        if kernels
        else "# The model has no kernels of its own.",
        "library_link": link if library else "# The model calls no operator of the library.",
    }
    return render(template(__package__, "project", "CMakeLists.txt.in"), fields)


def _readme(program: HostProgram, kernels: Sequence[str]) -> str:
    def rows(specs: Iterable[tuple[object, str]]) -> str:
        return "\n".join(f"    {name:24} {spec}" for spec, name in specs)

    steps = list(program.steps())
    launches = [step for step in steps if isinstance(step, KernelStep)]
    fields = {
        "name": program.name,
        "soc": soc(program.hardware),
        "hardware": program.hardware,
        "cann": cann(program),
        "toolkit": _needs(program),
        "inputs": rows(zip((spec for spec, _ in program.inputs), input_files(program), strict=True)),
        "outputs": rows(zip((spec for spec, _ in program.outputs), output_files(program), strict=True)),
        "launches": str(len(launches)),
        "kernels": str(len(kernels)),
        "library_calls": str(sum(isinstance(step, LibraryStep) for step in steps)),
        "arena": memory_text(program),
        "weights": f"{program.constants.nbytes / 2**20:.2f}",
        "host": sizes_section(program) + host_section(program),
        "blocks": ", ".join(map(str, sorted({step.blocks for step in launches}))) or "none",
    }
    return render(template(__package__, "project", "README.md.in"), fields)


def _launch(step: KernelStep, names: ProgramNames) -> list[str]:
    def call(blocks: str) -> list[str]:
        args = [blocks, "device.stream()", *map(names.at, step.operands), *map(names.size, step.sizes)]
        return wrapped(f"  CHECK_ACL(ACLRT_LAUNCH_KERNEL({step.function})(", args, "));")

    return names.launch(step, call)


def _call(step: LibraryStep, names: ProgramNames) -> list[str]:
    if step.kind == "matmul":
        return _product(step, names)
    if step.kind == INTEGER:
        return _integer_product(step, names)
    assert step.kind == "conv2d", step
    conv = convolution(Conv2dAttrs.from_json(in_numbers(step.kind, step.attrs, names.program.open.usual)))
    shapes = convolution_shapes(step.attrs) if is_open(step.attrs) else conv.shapes
    views = []
    for buffer, shape in zip((*step.operands, step.result), shapes, strict=True):
        form = "ACL_FORMAT_NCHW" if len(shape) == 4 else "ACL_FORMAT_ND"
        views.append(_view(buffer, shape, contiguous(shape), 0, names, form))
    numbers = ", ".join(
        "{" + ", ".join(map(str, values)) + "}" for values in (conv.stride, conv.padding, conv.dilation)
    )
    bias = len(views) == 4
    lines = [f"  {{\n    const View bias = {views[2]};"] if bias else []
    args = [views[0], views[1], "&bias" if bias else "nullptr", f"{{{numbers}, {conv.groups}}}", views[-1]]
    indent = "    " if bias else "  "
    lines += wrapped(f"{indent}Convolution(device, ", args, ");")
    return [*lines, "  }"] if bias else lines


def _product(step: LibraryStep, names: ProgramNames) -> list[str]:
    attributes = MatmulAttrs.from_json(in_numbers(step.kind, step.attrs, names.program.open.usual))
    calls = products(attributes)  # refuses what the library's table does not allow
    if is_open(step.attrs):
        return _sized_product(step, names)
    roles = ["a", "b"] + ["bias"] * attributes.bias + ["residual"] * (attributes.residual != "none") + ["out"]
    buffers = dict(zip(roles, (*step.operands, step.result), strict=True))

    def view(operand: Operand) -> str:
        return _view(buffers[operand.role], operand.shape, operand.strides, operand.offset, names)

    lines = []
    for call in calls:
        lines += wrapped(f"  {call.function}(device, ", [view(operand) for operand in call.operands], ");")
    return lines


def _integer_product(step: LibraryStep, names: ProgramNames) -> list[str]:
    """A product of int8: matrices that lie by rows, the second by the result's columns."""
    known = IntegerMatmulAttrs.from_json(in_numbers(step.kind, step.attrs, names.program.open.usual))
    rows: Size = json.loads(step.attrs)["m"]
    shapes = ((rows, known.k), (known.n, known.k), (1,), (rows, known.n))
    views = [
        _view(buffer, shape, contiguous(shape), 0, names)
        for buffer, shape in zip((*step.operands, step.result), shapes, strict=True)
    ]
    return wrapped("  QuantMatmul(device, ", views, ");")


def _sized_product(step: LibraryStep, names: ProgramNames) -> list[str]:
    """A product whose attributes sizes decide: one call, or with a term a call for every outer product."""
    product = SizedProduct.of(step.attrs)
    buffers = dict(zip(product.roles, (*step.operands, step.result), strict=True))
    batch = product.batch
    # with a term there is one batch dimension in a call
    outer, inner = (batch[:-1], batch[-1:]) if product.term else ((), batch)
    counters = {f"_outer{number}_": f"outer{number}" for number in range(len(outer))}
    shift: list[Size] = [0, 0, 0]
    for counter, each in zip(counters, outer, strict=True):
        shift = [
            plus(moved, times(counter, step)) if step != 0 else moved
            for moved, step in zip(shift, each.strides, strict=True)
        ]
    known = attrs.evolve(names, sizes={**names.sizes, **counters})
    function = "Matmul" if not product.term else "Baddbmm" if inner else "Addmm"
    roles = [*([product.term] if product.term else []), "a", "b", "out"]
    views = []
    for role in roles:
        view = product.view(role, inner, shift)
        views.append(_view(buffers[role], view.shape, view.strides, view.offset, known))
    lines = wrapped(f"{'  ' * (len(outer) + 1)}{function}(device, ", views, ");")
    for number in reversed(range(len(outer))):
        indent, name = "  " * (number + 1), f"outer{number}"
        extent = names.size(outer[number].extent)
        lines = [f"{indent}for (int64_t {name} = 0; {name} < {extent}; ++{name}) {{", *lines, f"{indent}}}"]
    return lines


def _view(
    buffer: str,
    shape: Sequence[Size],
    strides: Sequence[Size],
    offset: Size,
    names: ProgramNames,
    form: str = "ACL_FORMAT_ND",
) -> str:
    more = f", {names.size(offset)}" if offset or form != "ACL_FORMAT_ND" else ""
    more += f", {form}" if form != "ACL_FORMAT_ND" else ""
    kind = TYPES[names.program.buffers[buffer].dtype]
    dims, steps = names.listed(shape), names.listed(strides)
    return f"View({names.at(buffer)}, {names.elements(buffer)}, {kind}, {dims}, {steps}{more})"


PROJECT = ProjectKind("uir-ascend", "Ascend CANN", texts, frozenset({"run.sh"}))
