# SPDX-License-Identifier: Apache-2.0
"""No sync of an emitted text is needless, and none can go unseen: each is taken out in turn, and missed.

Each wait, flag, barrier and meeting is dropped, replaced by the form that orders nothing, or made weaker, in
kernels of all kinds; scripts/plant_text_faults.py does so in all kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.pipeline import compile_kernel
from uir_tvm.target.registry import TARGETS

from tests.corpus import recipes
from tests.device import ascend_faults, bang_faults, cuda_faults, fault_graphs
from tests.device.judge_text import FINDING, RESULT, UNCOMPILED, Judge
from tests.device.merged_faults import judge_all
from tests.device.text_faults import FaultTable

Kernels = Callable[[], Iterator[tuple[str, DeviceKernel, list[np.ndarray]]]]


@attrs.frozen
class Texts:
    """The texts of a target whose syncs are taken out: kernels of `fault_graphs`, and of recipes."""

    table: FaultTable
    graphs: Callable[[], Iterator[tuple[Any, ...]]]
    kernels: Kernels
    recipes: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """Of all its texts."""
        return [name for name, *_ in self.graphs()] + list(self.recipes)


TEXTS = {
    "uir-bang": Texts(
        bang_faults.TABLE,
        fault_graphs.bang_graphs,
        fault_graphs.bang_kernels,
        (
            "softmax 197x3",
            "layer norm 2x13x37 37 37",
            "product 33x65 65x17 17",
            "transpose 3x33x65",
            "embedding 50x33 3x7 7x33",
        ),
    ),
    "uir-cuda": Texts(cuda_faults.TABLE, fault_graphs.cuda_graphs, fault_graphs.cuda_kernels),
    "uir-ascend": Texts(ascend_faults.TABLE, fault_graphs.ascend_graphs, fault_graphs.ascend_kernels),
}


@functools.cache
def kernels_of(target: str) -> dict[str, tuple[DeviceKernel, list[np.ndarray]]]:
    """Those of `fault_graphs` with their inputs, by name."""
    return {about: (kernel, inputs) for about, kernel, inputs in TEXTS[target].kernels()}


@functools.cache
def judge_of(target: str, name: str) -> Judge:
    """Who judges the faults of a text."""
    if name in TEXTS[target].recipes:
        example = recipes.example(name)
        record = compile_kernel(example.func, TARGETS[target].target(None, "model"), "kernel")
        return Judge(name, record.lowered, example.inputs)
    return Judge(name, *kernels_of(target)[name])


@pytest.mark.parametrize(
    ("target", "name"), [(target, name) for target, texts in TEXTS.items() for name in texts.names]
)
def test_every_sync_is_missed(target: str, name: str) -> None:
    """The model finds a fault of order in the very text that lacks one sync, whichever that is."""
    judge, table = judge_of(target, name), TEXTS[target].table
    kernel = judge.kernel
    kinds = [kind for kind in table.kinds if kind in table.orders]
    faults = [fault for kind in kinds for fault in table.faults(kernel.source, kind, kernel.report)]
    assert faults
    for verdict in judge_all(judge, faults):
        told = (verdict.fault.kind, verdict.fault.line, verdict.fault.what)
        assert verdict.by == FINDING, (verdict.by, *told)


#: The faults that any printer of BANG C might make -> the kinds of the table that plant them.
EXPECTED_OF_BANG_C = {
    "a dropped wait": ("drop a wait", "wait without order"),
    "a dropped meeting": ("drop a meeting", "meeting without order"),
    "a number of segments that is off by one": ("segments of a copy",),
    "a copy in the wrong direction": ("direction",),
    "an unaligned size": ("unaligned size of a copy",),
    "SRAM in a Block launch": ("clusters launched as cores",),
    "swapped stages of a pipeline": ("slot of a pipeline", "stages swapped"),
}


#: Texts in which a kind is planted.
PLANTED = 2


@pytest.mark.parametrize("expected", EXPECTED_OF_BANG_C)
def test_what_a_printer_of_bang_c_might_do_wrong(expected: str) -> None:
    """Each has its places in the texts, and is caught there."""
    texts = TEXTS["uir-bang"]
    for kind in EXPECTED_OF_BANG_C[expected]:
        planted = 0
        for name in texts.names:
            judge = judge_of("uir-bang", name)
            fault = next(texts.table.faults(judge.kernel.source, kind), None)
            if fault is not None:
                verdict = judge(fault)
                assert verdict.by in (FINDING, RESULT, UNCOMPILED), (name, kind, fault.line, fault.what)
                planted += 1
            if planted == PLANTED:
                break
        assert planted == PLANTED, kind
