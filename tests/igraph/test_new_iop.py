# SPDX-License-Identifier: Apache-2.0
"""An iOp from outside the package: with its row and one emission, every stage takes it as one of its own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tvm import tirx
from uir_tvm import hardware
from uir_tvm.errors import CodegenError, VerifyError
from uir_tvm.explain.arithmetic import arithmetic
from uir_tvm.igraph import IGraph, iops_reads, iops_shape, parse_igraph, print_igraph
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.iops import IOPS, IOpSpec, ValidBoxes
from uir_tvm.igraph.iops_scalar import NUMBER
from uir_tvm.optimize import optimize
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.target import registry
from uir_tvm.target.cpu.emit_value import EMIT
from uir_tvm.verify import verify
from uir_tvm.verify.access import GraphFacts

from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of

#: Every unit averages a row of 32; ``c`` is a copy that tidying reads through.
TEXT = """
igraph average on {name} parallel ({groups}, {units}) {{
  x = iPointer(dram, fp32, {size}, in)
  y = iPointer(dram, fp32, {size}, in)
  z = iPointer(dram, fp32, {size}, out)
  a = iPointer(reg, fp32, 32)
  b = iPointer(reg, fp32, 32)
  c = iPointer(reg, fp32, 32)
  move.dram.reg.fp32 a[0; (1,32); (32,1)], x[32*pid; (1,32); (32,1)]
  move.dram.reg.fp32 b[0; (1,32); (32,1)], y[32*pid; (1,32); (32,1)]
  move.reg.reg.fp32 c[0; (1,32); (32,1)], b[0; (1,32); (32,1)]
  average.fp32 a[0; (1,32); (32,1)], a[0; (1,32); (32,1)], c[0; (1,32); (32,1)]
  move.reg.dram.fp32 z[32*pid; (1,32); (32,1)], a[0; (1,32); (32,1)]
}}
"""


def _average(iop: Any, region: ValidBoxes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(a + b) / 2."""
    return (a + b) * a.dtype.type(0.5)


@pytest.fixture(autouse=True)
def row(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = IOpSpec(
        "average",
        "t = (a + b) / 2",
        ("dtype",),
        ("dtype", "dtype"),
        ("dtype",),
        iops_shape.same,
        iops_reads.same,
        _average,
        kinds=NUMBER,
        elementwise=True,
        work="add",
    )
    monkeypatch.setitem(IOPS, spec.op, spec)
    monkeypatch.setitem(
        EMIT, spec.op, lambda kernel, action, args, point: (args[0] + args[1]) * tirx.const(0.5, "float32")
    )


def graph_for(model: str | None, kind: str) -> IGraph:
    """The graph on all units of a hardware model."""
    hw = hardware.get(model, kind)
    groups, units = int(hw.num_groups), int(hw.num_units)
    size = 32 * groups * units
    text = TEXT.format(name=json.dumps(str(hw.name)), groups=groups, units=units, size=size)
    return parse_igraph(text, hw)


def test_it_is_read_printed_verified_and_counted() -> None:
    graph = graph_for(None, "cpu")
    assert "average.fp32" in print_igraph(graph)
    verify(graph)
    assert arithmetic(GraphFacts(graph)).count("add") == 32 * graph.num_parallel
    narrow = print_igraph(graph).replace("average.fp32 a[0; (1,32)", "average.fp32 a[0; (1,16)")
    with pytest.raises(VerifyError, match="average"):
        verify(parse_igraph(narrow))


def test_passes_and_the_cpu_take_it() -> None:
    """Tidying reads through the copy, which is then dead; the interpreter and the target agree."""
    graph = graph_for(None, "cpu")
    done = optimize(graph)
    x, y = np.random.default_rng(1).standard_normal((2, 32 * graph.num_parallel)).astype("float32")
    (meant,) = run(graph, x, y)
    np.testing.assert_array_equal(meant, (x + y) * np.float32(0.5))
    assert "c[" not in print_igraph(done.graph)
    for each in (graph, done.graph):
        np.testing.assert_array_equal(run_igraph(each, "uir-cpu", x, y)[0], meant)


@pytest.mark.parametrize("device", DEVICE_TARGETS, ids=name_of)
def test_a_target_without_an_emission_refuses_it(device: DeviceTarget) -> None:
    graph = graph_for(device.model, registry.get(device.name).kind)
    with pytest.raises(CodegenError, match="average"):
        run_igraph(graph, device.name, *np.zeros((2, 32 * graph.num_parallel), "float32"))
