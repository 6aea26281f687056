# SPDX-License-Identifier: Apache-2.0
"""uir-ascend: iGraph to Ascend C, for the vector and cube cores of Ascend 910B and for their host model.

lower       phases and the call of the printer, which is C++ (src/codegen/ascend)
places      whether there is a device, and which targets of TVM stand for it and for its host model
device      how texts are compiled and launched: `toolchain` (the vendor's compiler), `host_model`
presets, costs, tiles, passes, library, accuracy    what is known of NPUs, as data
"""

from __future__ import annotations

from ..record import TargetRecord, register_target
from .toolkit import CANN

TARGET = register_target(
    TargetRecord(
        "uir-ascend",
        "ascend",
        __name__,
        rank=20,
        hardware=".presets",
        passes=".passes:PASSES",
        lower=".lower:lower",
        places=".places:PLACES",
        devices=("npu",),
        space=".tiles:TILES",
        size_ranges=".tiles:SIZE_RANGES",
        attention_space=".tiles:ATTENTION",
        device=".device:DEVICE",
        library=".library:TABLE",
        library_cost=".library:COST",
        accuracy=".accuracy:ACCURACY",
        machine=".machine:machine",
        project=".project:PROJECT",
        checks=".checks:CHECKS",
        toolkit=CANN,
        variables={
            "ASCEND_HOME_PATH": "the CANN toolkit to take bisheng from, before PATH "
            "(ASCEND_TOOLKIT_HOME likewise)"
        },
        tanh_by_powers=True,
        float_places=True,
    )
)
