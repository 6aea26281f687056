# SPDX-License-Identifier: Apache-2.0
"""Functions of the host that launch a text's kernels, for the vendor's compiler to put beside them.

For a kernel ``NAME(GM_ADDR x, GM_ADDR y)`` the function ``NAME_launch(blocks, stream, arguments)``, which the
runtime finds by that name (src/runtime/npu_launch.cc).
"""

from __future__ import annotations

import re

_KERNEL = re.compile(r'extern "C" __global__ __aicore__ void (\w+)\(([^)]*)\)')


def kernels_of(source: str) -> dict[str, int]:
    """The kernels of an emitted text, and how many arguments each takes, in order."""
    found = _KERNEL.findall(source)
    return {name: len(parameters.split(",")) if parameters.strip() else 0 for name, parameters in found}


def with_launchers(source: str) -> str:
    """An emitted text, and after it a launcher for each of its kernels."""
    lines = [source.rstrip("\n"), ""]
    for name, count in kernels_of(source).items():
        arguments = ", ".join(f"static_cast<uint8_t*>(arguments[{k}])" for k in range(count))
        lines += [
            f'extern "C" void {name}_launch(uint32_t blocks, void* stream, void* const* arguments) {{',
            f"  {name}<<<blocks, nullptr, stream>>>({arguments});",
            "}",
            "",
        ]
    return "\n".join(lines)
