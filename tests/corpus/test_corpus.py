# SPDX-License-Identifier: Apache-2.0
"""The corpus is what it says: valid, and computing what NumPy says; its names are unique."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import interpreter, parse_igraph
from uir_tvm.verify import verify

from . import by_hand, corpus, recipes, shared

#: Sums of some thousand fp32 terms in another order, and functions a few ULP apart; of the largest value.
TOLERANCE = 2e-5


def assert_near(got: np.ndarray, want: np.ndarray) -> None:
    want = np.asarray(want).reshape(-1)
    limit = TOLERANCE * max(1.0, float(np.abs(want).max(initial=0))) if got.dtype.kind == "f" else 0
    np.testing.assert_allclose(got.reshape(-1).astype(np.float64), want, rtol=0, atol=limit)


@pytest.mark.parametrize("name", by_hand.BY_HAND)
def test_by_hand(name: str) -> None:
    graph, case = by_hand.graph(name), by_hand.BY_HAND[name]
    verify(graph)
    assert parse_igraph(str(graph)) == graph
    inputs = case.inputs(graph)
    (got,) = interpreter.run(graph, *[a.reshape(-1) for a in inputs])
    assert_near(got, case.expected(inputs))


def test_every_file_is_listed() -> None:
    assert sorted(p.stem for p in by_hand.FOLDER.glob("*.igraph")) == sorted(by_hand.BY_HAND)


@pytest.mark.parametrize("case, machine", list(recipes.pairs()), ids=lambda part: part.replace(" ", "_"))
def test_recipe(case: str, machine: str) -> None:
    graph, example = recipes.graph(case, machine), recipes.example(case)
    verify(graph)
    for got, want in zip(interpreter.run(graph, *example.inputs), example.expected, strict=True):
        assert_near(got, want)


@pytest.mark.parametrize("name", shared.SHARED)
def test_shared(name: str) -> None:
    """Valid; what it computes is compared with TVM's lowering in the tests of extraction."""
    func, graph = shared.made(name)
    verify(graph)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([int(n) for n in p.shape]).astype(np.float32) for p in func.params]
    inputs = [a for a, p in zip(arrays, graph.params, strict=True) if p.role != "out"]
    x = inputs[0].astype(np.float64)
    (got,) = interpreter.run(graph, *inputs)
    if name.startswith("row sum"):
        assert_near(got, x.sum(-1))
    elif name.startswith("softmax"):
        assert_near(got, np.exp(x) / np.exp(x).sum(-1, keepdims=True))
    else:
        assert_near(got, x @ inputs[1].astype(np.float64))


def test_the_corpus_has_what_analyses_are_tried_on() -> None:
    """Unique names; several units in a group, every scope of sync, group forms, sram and temporary dram."""
    entries = list(corpus())
    assert len({e.name for e in entries}) == len(entries)
    assert {e.origin for e in entries} == {"hand", "recipe"}
    iops = [iop for e in entries for iop, _ in e.graph.walk()]
    assert {i.attrs["scope"] for i in iops if i.op == "sync"} >= {"sram", "dram"}
    assert {i.op for i in iops if i.attrs.get("scope") == "group"} == {"reduce", "broadcast"}
    assert any(e.graph.num_units > 1 for e in entries if e.origin == "recipe")
