# SPDX-License-Identifier: Apache-2.0
"""Graphs for an MLU, printed and run on the host model beside the interpreter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from uir_tvm import hardware
from uir_tvm.device import run as device_run
from uir_tvm.igraph import IGraph, interpreter, parse_igraph
from uir_tvm.optimize import optimize
from uir_tvm.target import registry
from uir_tvm.target.bang.lower import lower
from uir_tvm.target.device_kernel import DeviceKernel

DEVICE = hardware.get("mlu370-x8", "bang")
#: The passes of the target.
PASSES = registry.get("uir-bang").passes
#: No more than what the printer needs: moves stay as they were written.
AS_WRITTEN = ("insert_sync", "allocate")


def parse(text: str, groups: int = 1, units: int = 1) -> IGraph:
    """A graph from its pointers and body."""
    return parse_igraph(f'igraph g on "{DEVICE.name}" parallel ({groups}, {units}) {{\n{text}\n}}', DEVICE)


def printed(graph: IGraph, passes: Sequence[str] = AS_WRITTEN) -> DeviceKernel:
    """The kernel of a graph after some passes."""
    return lower(optimize(graph, passes).graph)


def check(
    graph: IGraph,
    arrays: Sequence[np.ndarray],
    passes: Sequence[str] = AS_WRITTEN,
    rtol: float = 0.0,
    hint: str = "",
) -> DeviceKernel:
    """Runs a graph on the model: no finding, and the interpreter's values (``rtol`` 0: to the bit)."""
    kernel = printed(graph, passes)
    ran = device_run.run(kernel, arrays, max_seconds=60)
    findings = [finding for result in ran.results for finding in result.findings]
    assert not findings, f"{hint}: {findings[0]}\n{kernel.source}"
    wanted = interpreter.run(graph, *arrays)
    for pointer, value in zip([p for p in graph.params if p.role != "in"], wanted, strict=True):
        got = np.asarray(ran.outputs[str(pointer.name)])
        if rtol == 0:
            a, b = (np.asarray(x).reshape(-1).view(np.uint8) for x in (value, got))
            np.testing.assert_array_equal(b, a, err_msg=f"{hint}: {pointer.name}\n{kernel.source}")
        else:
            np.testing.assert_allclose(got.reshape(-1), np.asarray(value).reshape(-1), rtol=rtol, atol=rtol)
    return kernel
