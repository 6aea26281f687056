# SPDX-License-Identifier: Apache-2.0
"""uir-bang: iGraph to BANG C, for Cambricon MLUs and for their host model.

lower       phases and the call of the printer, which is C++ (src/codegen/bang)
places      whether there is a device, and which targets of TVM stand for it and for its host model
device      how texts are compiled and launched: `toolchain` (the vendor's compiler), `host_model`
presets, costs, tiles, passes, library, accuracy    what is known of MLUs, as data
"""

from __future__ import annotations

from ..record import TargetRecord, register_target
from .toolkit import CNCC

TARGET = register_target(
    TargetRecord(
        "uir-bang",
        "bang",
        __name__,
        rank=30,
        hardware=".presets",
        passes=".passes:PASSES",
        lower=".lower:lower",
        places=".places:PLACES",
        devices=("mlu",),
        space=".tiles:TILES",
        size_ranges=".tiles:SIZE_RANGES",
        product_space=".tiles:PRODUCTS",
        attention_space=".tiles:ATTENTION",
        device=".device:DEVICE",
        library=".library:TABLE",
        library_cost=".library:COST",
        load=".library:register",
        accuracy=".accuracy:ACCURACY",
        machine=".machine:machine",
        project=".project:PROJECT",
        checks=".checks:CHECKS",
        toolkit=CNCC,
        variables={"NEUWARE_HOME": "the Cambricon toolkit to take cncc from, before PATH"},
        tanh_by_powers=True,
        float_places=True,
    )
)
