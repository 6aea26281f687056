# SPDX-License-Identifier: Apache-2.0
"""Extraction only extracts: each value has a register of its own, and a graph can be run and completed."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.extract import extract
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.iops import spec_of
from uir_tvm.optimize import FIRST, completed
from uir_tvm.optimize.flow import flow_of
from uir_tvm.optimize.webs import webs_of
from uir_tvm.schedule import apply_default
from uir_tvm.verify import verify

from ..corpus import recipes
from . import shared_work as work


def raw(case: str) -> IGraph:
    """What extraction makes of an example for one unit in a group."""
    hardware = recipes.HARDWARE["cpu"]
    return extract(apply_default(recipes.example(case).func, hardware), hardware)


@pytest.mark.parametrize("case", ["softmax 32x128", "layer norm 16x96 96 96", "product 48x100 100x72 72"])
def test_every_value_has_a_register_of_its_own(case: str) -> None:
    graph = raw(case)
    own = [str(p.name) for p in graph.pointers if str(p.name).startswith("t_fp32")]
    assert own and all(len(webs_of(flow_of(graph), name)) == 1 for name in own)


def test_a_graph_of_units_apart_runs_before_any_pass() -> None:
    example = recipes.example("softmax 32x128")
    graph = raw("softmax 32x128")
    for got, want in zip(interpreter.run(graph, *example.inputs), example.expected, strict=True):
        np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=2e-6)
    done = completed(graph)
    assert sum(1 for _ in done.walk()) < sum(1 for _ in graph.walk()), "repeated loads are left to a pass"
    assert done.num_parallel == graph.num_parallel


def test_syncs_are_left_to_a_pass() -> None:
    func = work.product(32, 16, 24)
    graph = extract(work.stage_b(func, work.share_b).mod["main"], work.GRID)
    assert not any(spec_of(iop).barrier for iop, _ in graph.walk())
    done = completed(graph)
    assert any(iop.op == "sync" for iop, _ in done.walk())
    verify(done)


def test_a_completed_graph_is_complete() -> None:
    graph = completed(raw("softmax 32x128"))
    for row in FIRST:
        assert row.run(graph) is graph, row.name
