# SPDX-License-Identifier: Apache-2.0
"""Build an exported MLU project here, without a toolkit: its files as they are, for the host model.

The kernels are compiled as the host model compiles them; for each, a launcher is written with a launch on the
model behind it. The host program is compiled against stand-ins of the vendor's headers
(src/device/bang/host/include), and linked with stand-ins of the runtime and of the operator library
(``libuir_cnrt.so``), which check what they are called with.
"""

from __future__ import annotations

import json
import pathlib
import re

import attrs

from ... import hardware
from ...device.device_kernel import describe_device
from ...device.text_model import library as model_library
from ...export.render import render, template
from ...export.stand_in import build_program
from . import host_model

#: A launcher of a text.
_LAUNCHER = re.compile(r'extern "C" void (\w+)_launch\(cnrtQueue_t queue([^)]*)\)')
#: The type of a size.
SIZE = "int64_t"


@attrs.frozen
class KernelSignature:
    """What a text says of a kernel: function, parameters, and how many of them are sizes."""

    name: str
    params: tuple[str, ...]
    sizes: int


def kernels(text: str) -> list[KernelSignature]:
    """The kernels of a text that it launches itself."""
    found = []
    for name, listed in _LAUNCHER.findall(text):
        params = [param.split() for param in listed.split(",") if param.strip()]
        sizes = sum(words[0] == SIZE for words in params)
        found.append(KernelSignature(name, tuple(words[-1].lstrip("*") for words in params), sizes))
    return found


def headers() -> pathlib.Path:
    """The folder of the stand-ins of the vendor's headers."""
    return host_model.headers().parent / "host" / "include"


def build(
    project: str | pathlib.Path, folder: str | pathlib.Path, *, objects: str | pathlib.Path | None = None
) -> pathlib.Path:
    """Build a project on the host model.

    Parameters
    ----------
    project : str or Path
        What `write_project` wrote.
    folder : str or Path
        Where generated files and the program go; it is made.
    objects : str or Path, optional
        Where compiled files are kept, and found by a hash of what they depend on. Default: `folder`.

    Returns
    -------
    Path
        The program; run it with ``--project PROJECT``.

    Raises
    ------
    ToolchainError
        There is no C++ compiler, or it refuses a file.
    """
    project, folder = pathlib.Path(project), pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    device = _device((project / "README.md").read_text())
    stubs = []
    for file in sorted((project / "kernels").glob("*.mlu")):
        text = file.read_text()
        compiled = host_model.compile(text)
        stubs += [_stub(folder, kernel, compiled, device) for kernel in kernels(text)]
    libraries = model_library().parent
    links = [f"-L{libraries}", "-luir_cnrt", "-luir_device", f"-Wl,-rpath,{libraries}"]
    return build_program(project, folder, stubs, headers(), links, objects)


def _device(readme: str) -> str:
    """The device that a project is for, as the host model is told."""
    found = re.search(r"compiled by uir_tvm for Cambricon ([\w-]+):", readme)
    assert found, readme[:200]
    return json.dumps(describe_device(hardware.get(found[1], "bang")))


def _stub(folder: pathlib.Path, kernel: KernelSignature, compiled: pathlib.Path, device: str) -> pathlib.Path:
    """The source of a launcher with the host model behind it."""
    source = folder / f"{kernel.name}_launch.cpp"
    tensors = len(kernel.params) - kernel.sizes
    types = ["void*"] * tensors + [SIZE] * kernel.sizes
    fields = {
        "name": kernel.name,
        "params": "".join(f", {kind} {name}" for kind, name in zip(types, kernel.params, strict=True)),
        "args": ", ".join(f"(void*){name}" for name in kernel.params),
        "names": ", ".join(f'"{name}"' for name in kernel.params),
        "count": str(len(kernel.params)),
        "sizes": str(kernel.sizes),
        "library": json.dumps(str(compiled)),
        "device": json.dumps(device),
    }
    source.write_text(render(template(__package__, "on_model", "launch.cpp.in"), fields))
    return source
