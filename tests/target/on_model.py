# SPDX-License-Identifier: Apache-2.0
"""Graphs and conformance cases, printed for a device and run on its host model beside the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
from uir_tvm import hardware
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.device.run_text import run
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph
from uir_tvm.optimize import optimize
from uir_tvm.target import registry
from uir_tvm.target.ascend.lower import lower as lower_ascend
from uir_tvm.target.bang.lower import lower as lower_bang

from ..conformance.cases import CLASSES, Case
from ..conformance.shapes import SHAPES, ShapeClass
from ..conformance.test_targets import check

#: No more than what printers need: moves stay as they were written.
AS_WRITTEN = ("insert_sync", "allocate")
#: A wide tile: work buffers do not hold it whole, and rows are longer than a repeat.
WIDE = ShapeClass("wide", 3, 1500, (1500, 1))
#: Rows of 1024 dense elements.
DENSE = ShapeClass("dense", 5, 1024, (1024, 1))


def case_of(kind: str, dtype: str, shape: str | ShapeClass, names: Sequence[str] = ()) -> Case:
    """The operations of a class for a dtype (those named, if any are) on tiles of a shape class."""
    made = tuple(o for o in CLASSES[kind](dtype) if not names or o.name in names)
    assert made, f"no operation of {kind} {dtype} is named so"
    where = SHAPES[shape] if isinstance(shape, str) else shape
    return Case(f"{kind}-{dtype}-{where.name}", where, made)


@attrs.frozen
class OnModel:
    """A device: its hardware, how graphs become text, and the passes of its target."""

    hardware: HardwareModel
    lower: Callable[[IGraph], DeviceKernel]
    passes: tuple[str, ...]

    def parse(self, text: str, groups: int = 1, units: int = 1) -> IGraph:
        """A graph from its pointers and body."""
        head = f'igraph g on "{self.hardware.name}" parallel ({groups}, {units})'
        return parse_igraph(f"{head} {{\n{text}\n}}", self.hardware)

    def printed(self, graph: IGraph, passes: Sequence[str] = AS_WRITTEN) -> DeviceKernel:
        """The kernel of a graph after some passes."""
        return self.lower(optimize(graph, passes).graph)

    def check(
        self,
        graph: IGraph,
        arrays: Sequence[np.ndarray],
        passes: Sequence[str] = AS_WRITTEN,
        rtol: float = 0.0,
        hint: str = "",
    ) -> DeviceKernel:
        """Runs a graph on the model: no finding, and the interpreter's values (``rtol`` 0: to the bit)."""
        kernel = self.printed(graph, passes)
        ran = run(kernel, arrays, max_seconds=60)
        findings = [finding for result in ran.results for finding in result.findings]
        assert not findings, f"{hint}: {findings[0]}\n{kernel.source}"
        wanted = interpreter.run(graph, *arrays)
        for pointer, value in zip([p for p in graph.params if p.role != "in"], wanted, strict=True):
            got = np.asarray(ran.outputs[str(pointer.name)])
            if rtol == 0:
                a, b = (np.asarray(x).reshape(-1).view(np.uint8) for x in (value, got))
                np.testing.assert_array_equal(b, a, err_msg=f"{hint}: {pointer.name}\n{kernel.source}")
            else:
                a, b = got.reshape(-1), np.asarray(value).reshape(-1)
                np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)
        return kernel

    def agrees(self, case: Case) -> DeviceKernel:
        """The model finds nothing in a case, and every output is what the interpreter computes."""
        graph, inputs = case.build(self.hardware)
        kernel = self.lower(graph)
        ran = run(kernel, inputs).check()
        wanted = interpreter.run(graph, *inputs, allow_unwritten=True)
        names = [o.name for o in case.operations]
        found = [ran.outputs[f"{name}_out"] for name in names]
        check(found, wanted, [case.tolerance(n) for n in range(len(names))], names)
        assert any(np.count_nonzero(w) for w in wanted)
        return kernel


ASCEND = OnModel(hardware.get("910b2", "ascend"), lower_ascend, tuple(registry.get("uir-ascend").passes))
BANG = OnModel(hardware.get("mlu370-x8", "bang"), lower_bang, tuple(registry.get("uir-bang").passes))


def without(case: Case, drop: Callable[[str], bool]) -> Case:
    """The case without the operations whose names are to be dropped."""
    return attrs.evolve(case, operations=tuple(o for o in case.operations if not drop(o.name)))
