# SPDX-License-Identifier: Apache-2.0
"""uir-cuda: iGraph to CUDA C++, for GPUs and for their host model.

lower       phases and the call of the printer, which is C++ (src/codegen/cuda)
places      whether there is a GPU, and which targets of TVM stand for it and for the host model
device      how texts are compiled and launched: `toolchain` for a GPU, `host_model` without one
ahead       cubins, made while a model compiles
presets, tiles, passes, library    what is chosen for GPUs, as data
"""

from __future__ import annotations

from ..record import TargetRecord, register_target

TARGET = register_target(
    TargetRecord(
        "uir-cuda",
        "cuda",
        __name__,
        rank=10,
        hardware=".presets",
        passes=".passes:PASSES",
        lower=".lower:lower",
        places=".places:PLACES",
        devices=("gpu",),
        space=".tiles:TILES",
        product_space=".tiles:PRODUCTS",
        attention_space=".tiles:ATTENTION",
        device=".device:DEVICE",
        ahead=".ahead:compile_ahead",
        library=".library:TABLE",
        machine=".machine:machine",
        checks=".checks:CHECKS",
        variables={
            "CUDA_HOME": "a CUDA toolkit to take nvcc or NVRTC from, before PATH (CUDA_PATH likewise)"
        },
    )
)
