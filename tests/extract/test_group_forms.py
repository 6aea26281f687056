# SPDX-License-Identifier: Apache-2.0
"""What units of a set hand each other is a plain copy into registers, or refused."""

from __future__ import annotations

from typing import Any, cast

import pytest
from uir_tvm.errors import ExtractionError
from uir_tvm.extract.group_forms import FormEmitter
from uir_tvm.extract.tree_nodes import GroupForm, Leaf
from uir_tvm.igraph import IOp, IPointer, ISlice, make

REG, SRAM, DRAM = (ISlice(IPointer(level, level, "fp32", 4), 0, (1, 4)) for level in ("reg", "sram", "dram"))

REFUSED = {
    "arithmetic": make.unary("exp", REG, REG),
    "a padded move": make.move(REG, SRAM, pad=0.0),
    "a result in dram": make.move(DRAM, SRAM),
    "a result in sram": make.move(SRAM, REG),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ["reduce", "broadcast"])
def test_what_is_no_copy_into_registers_is_refused(name: str, kind: str) -> None:
    # the refusal comes before the memory and the names are looked at
    emitter = FormEmitter(cast(Any, None), cast(Any, None))
    leaf = Leaf("sum", [], form=GroupForm(kind, "add", 2, True))
    with pytest.raises(ExtractionError, match="no plain copy") as caught:
        emitter.emit(leaf, [REFUSED[name]])
    assert "'sum'" in caught.value.where


def test_a_leaf_without_a_form_stays_as_it_is() -> None:
    nodes: list[IOp] = [REFUSED["arithmetic"]]
    assert FormEmitter(cast(Any, None), cast(Any, None)).emit(Leaf("sum", []), nodes) == nodes
