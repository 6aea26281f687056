# SPDX-License-Identifier: Apache-2.0
"""What units of a set hand each other is a plain copy into registers, or refused."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tvm.script import tirx as T
from uir_tvm.errors import ExtractionError
from uir_tvm.extract.group_forms import FormEmitter
from uir_tvm.extract.tree_nodes import GroupForm, Leaf
from uir_tvm.igraph import IOp, IPointer, ISlice, make, var

from .compare import check
from .shared_work import GRID

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


def test_the_leader_alone_stores_a_reduction_into_a_parameter_outside_of_sets() -> None:
    """The units of a group have iterations of their own, of one row; each of them adds a part of it."""

    @T.prim_func(s_tir=True)
    def row_sums(A: T.Buffer((2, 64), "float32"), S: T.Buffer((2,), "float32")):
        R = T.sblock_alloc_buffer((4,), scope="shared")
        for p in T.serial(8, annotations={"uir.parallel": "2,4"}):
            for u, k in T.grid(4, 16):
                with T.sblock("part"):
                    T.sblock_attr({"uir.group": 4})
                    vi = T.axis.spatial(2, p // 4)
                    vu, vk = T.axis.remap("SR", [u, k])
                    with T.init():
                        R[vu] = T.float32(0)
                    R[vu] = R[vu] + A[vi, vu * 16 + vk]
            for u in range(4):
                with T.sblock("sum"):
                    vi = T.axis.spatial(2, p // 4)
                    vu = T.axis.reduce(4, u)
                    with T.init():
                        S[vi] = T.float32(0)
                    S[vi] = S[vi] + R[vu]

    graph, _ = check(row_sums, hardware=GRID)
    # partial results that only the unit indexes are a group form as well
    assert [iop.attrs["scope"] for iop, _ in graph.walk() if iop.op == "reduce"] == ["unit", "group"]
    (store,) = [iop for iop, _ in graph.walk() if iop.target.pointer.name == "S"]
    assert store.target.row_end == 1 - var("pid") % 4
