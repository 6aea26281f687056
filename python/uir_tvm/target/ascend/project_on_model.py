# SPDX-License-Identifier: Apache-2.0
"""Build an exported Ascend project here, without a toolkit: its files as they are, for the host model.

The kernels are compiled as the host model compiles them; for each, the header is written that the toolkit's
CMake would generate (``aclrtlaunch_NAME.h``), with a launch on the model behind it. The host program is
compiled against stand-ins of the vendor's headers (src/device/ascendc/include), and linked with stand-ins of
the runtime and of the operator library (``libuir_acl.so``), which check what they are called with.
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

#: What a block is, by the vendor's name of the kernel's type.
CORES = {
    "AIV_ONLY": "aiv",
    "AIC_ONLY": "aic",
    "MIX_AIC_1_1": "mix_1_1",
    "MIX_AIC_1_2": "mix_1_2",
}

#: The type of a size.
SIZE = "int64_t"


@attrs.frozen
class KernelSignature:
    """What a kernel's file says of it: function, parameters, cores, and how many parameters are sizes."""

    name: str
    params: tuple[str, ...]
    core: str
    sizes: int

    @staticmethod
    def of(text: str) -> KernelSignature:
        """The kernel of a file."""
        found = re.search(r'extern "C" __global__ __aicore__ void (\w+)\(([^)]*)\)', text)
        assert found, text[:200]
        listed = [param.split() for param in found[2].split(",") if param.strip()]
        params = tuple(words[-1] for words in listed)
        sizes = sum(words[0] == SIZE for words in listed)
        kind = re.search(r"KERNEL_TASK_TYPE_DEFAULT\(KERNEL_TYPE_(\w+)\)", text)
        return KernelSignature(found[1], params, CORES[kind[1]] if kind else "aiv", sizes)

    @property
    def typed(self) -> str:
        """The parameters behind the stream."""
        tensors = len(self.params) - self.sizes
        types = ["void*"] * tensors + [SIZE] * self.sizes
        return "".join(f", {kind} {name}" for kind, name in zip(types, self.params, strict=True))


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
    device = _device((project / "CMakeLists.txt").read_text())
    stubs = []
    for file in sorted((project / "kernels").glob("*.cpp")):
        text = file.read_text()
        stubs.append(_stub(folder, KernelSignature.of(text), host_model.compile(text), device))
    libraries = model_library().parent
    links = [f"-L{libraries}", "-luir_acl", "-luir_device", f"-Wl,-rpath,{libraries}"]
    return build_program(project, folder, stubs, host_model.headers(), links, objects)


def _device(cmake: str) -> str:
    """The device that a project is for, as the host model is told."""
    found = re.search(r'set\(SOC_VERSION "Ascend(\w+)"', cmake)
    assert found, cmake[:200]
    return json.dumps(describe_device(hardware.get(found[1].lower(), "ascend")))


def _stub(folder: pathlib.Path, kernel: KernelSignature, compiled: pathlib.Path, device: str) -> pathlib.Path:
    """The header that the toolkit generates for a kernel, and the source of the launch behind it."""
    fields = {
        "name": kernel.name,
        "params": kernel.typed,
        "guard": f"UIR_ACLRTLAUNCH_{kernel.name.upper()}_H_",
    }
    (folder / f"aclrtlaunch_{kernel.name}.h").write_text(
        render(template(__package__, "on_model", "launch.h.in"), fields)
    )
    source = folder / f"aclrtlaunch_{kernel.name}.cpp"
    names = ", ".join(f'"{name}"' for name in kernel.params)
    source.write_text(
        render(
            template(__package__, "on_model", "launch.cpp.in"),
            {
                "name": kernel.name,
                "params": kernel.typed,
                "args": ", ".join(f"(void*){name}" for name in kernel.params),
                "names": names,
                "count": str(len(kernel.params)),
                "sizes": str(kernel.sizes),
                "library": json.dumps(str(compiled)),
                "core": json.dumps(kernel.core),
                "device": json.dumps(device),
            },
        )
    )
    return source
