# SPDX-License-Identifier: Apache-2.0
"""Conformance cases, or some of their operations, printed as BANG C and run on the host model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
from uir_tvm import hardware
from uir_tvm.device.run import run
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.target.bang.lower import lower
from uir_tvm.target.device_kernel import DeviceKernel

from ...conformance.cases import CLASSES, Case
from ...conformance.shapes import SHAPES, ShapeClass
from ...conformance.test_targets import check

HARDWARE = hardware.get("mlu370-x8", "bang")
#: A wide tile: work buffers do not hold it whole.
WIDE = ShapeClass("wide", 3, 1500, (1500, 1))


def case_of(kind: str, dtype: str, shape: str | ShapeClass, names: Sequence[str] = ()) -> Case:
    """The operations of a class for a dtype (those named, if any are) on tiles of a shape class."""
    made = tuple(o for o in CLASSES[kind](dtype) if not names or o.name in names)
    assert made, f"no operation of {kind} {dtype} is named so"
    where = SHAPES[shape] if isinstance(shape, str) else shape
    return Case(f"{kind}-{dtype}-{where.name}", where, made)


def printed(graph: IGraph) -> DeviceKernel:
    """The text of a graph whose slices have no addresses yet."""
    return lower(graph)


def agrees(case: Case) -> DeviceKernel:
    """The host model finds nothing, and every output is what the interpreter computes."""
    graph, inputs = case.build(HARDWARE)
    kernel = printed(graph)
    ran = run(kernel, inputs).check()
    wanted = interpreter.run(graph, *inputs, allow_unwritten=True)
    names = [o.name for o in case.operations]
    found = [ran.outputs[f"{name}_out"] for name in names]
    check(found, wanted, [case.tolerance(n) for n in range(len(names))], names)
    assert any(np.count_nonzero(w) for w in wanted)
    return kernel


def without(case: Case, drop: Callable[[str], bool]) -> Case:
    """The case without the operations whose names are to be dropped."""
    return attrs.evolve(case, operations=tuple(o for o in case.operations if not drop(o.name)))
