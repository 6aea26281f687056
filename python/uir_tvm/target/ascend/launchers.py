# SPDX-License-Identifier: Apache-2.0
"""Functions of the host that launch a text's kernels, for the vendor's compiler to put beside them.

For a kernel ``NAME(GM_ADDR x, GM_ADDR y, int64_t n)`` the function ``NAME_launch(blocks, stream,
arguments)``, which the runtime finds by that name (src/runtime/npu_launch.cc).
"""

from __future__ import annotations

import re

_KERNEL = re.compile(r'extern "C" __global__ __aicore__ void (\w+)\(([^)]*)\)')


#: Of a tensor, and of a size, which the runtime hands over as it is.
_ARGUMENTS = {
    "GM_ADDR": "static_cast<uint8_t*>(arguments[{k}])",
    "int64_t": "reinterpret_cast<int64_t>(arguments[{k}])",
}


def kernels_of(source: str) -> dict[str, tuple[str, ...]]:
    """The kernels of an emitted text, and the types of the arguments that each takes, in order."""
    found = _KERNEL.findall(source)
    return {
        name: tuple(one.split()[0] for one in parameters.split(",") if one.strip())
        for name, parameters in found
    }


def with_launchers(source: str) -> str:
    """An emitted text, and after it a launcher for each of its kernels."""
    lines = [source.rstrip("\n"), ""]
    for name, types in kernels_of(source).items():
        arguments = ", ".join(_ARGUMENTS[kind].format(k=k) for k, kind in enumerate(types))
        lines += [
            f'extern "C" void {name}_launch(uint32_t blocks, void* stream, void* const* arguments) {{',
            f"  {name}<<<blocks, nullptr, stream>>>({arguments});",
            "}",
            "",
        ]
    return "\n".join(lines)
