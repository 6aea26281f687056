# SPDX-License-Identifier: Apache-2.0
"""Small graphs as text, and what every test of a pass asks of them."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.interpreter import run
from uir_tvm.igraph.iops import mnemonic
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.verify import verify

from tests.igraph.strategies import random_inputs

from .pairs import HARDWARE


def toy(body: str, parallel: tuple[int, int] = (1, 1), hardware: str = HARDWARE) -> IGraph:
    """A verified graph of a few lines; x (in) and y (out) have 256 elements."""
    text = f"""{hardware}
igraph toy on toy parallel {parallel} {{
  x = iPointer(dram, fp32, 256, in)
  y = iPointer(dram, fp32, 256, out)
{body}
}}
"""
    graph = parse_igraph(text)
    verify(graph)
    return graph


def applied(module: ModuleType, graph: IGraph) -> IGraph:
    """What a pass makes of a graph: another one, verified, with the same results to the bit."""
    made = module.run(graph)
    assert made is not graph, "the pass changed nothing"
    verify(made)
    inputs = random_inputs(graph)
    for a, b in zip(run(graph, *inputs), run(made, *inputs), strict=True):
        np.testing.assert_array_equal(a, b)
    assert module.run(made) is made, "a second run must find nothing to do"
    return made


def left_alone(module: ModuleType, graph: IGraph) -> None:
    """A pass must not touch this graph."""
    assert module.run(graph) is graph


def mnemonics(graph: IGraph) -> list[str]:
    """The mnemonic of every iOp in program order."""
    return [mnemonic(iop) for iop, _ in graph.walk()]
