# SPDX-License-Identifier: Apache-2.0
"""Operations: every name has a class, counts against enumeration, contractions by their formula."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from uir_tvm.explain.arithmetic import arithmetic
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.iops import IOPS, WORK
from uir_tvm.verify.access import GraphFacts

from tests.igraph.strategies import runnable_igraphs

from . import graphs
from .brute import operations

#: iOps that compute nothing.
SILENT = {"move", "sync", "broadcast", "identity", "fill", "iota", "transpose", "gather", "scatter"}


def test_every_iop_and_name_has_its_class() -> None:
    classes = [_class(op, name) for op, spec in IOPS.items() for name in spec.names or [""]]
    assert {op for op, spec in IOPS.items() if spec.names is None and spec.work is None} == SILENT
    assert {kind for kind in classes if kind is not None} == set(WORK)


def _class(op: str, name: str) -> str | None:
    spec = IOPS[op]
    return spec.work if spec.names is None else spec.names[name].work


@given(runnable_igraphs())
def test_random_graphs_compute_what_enumeration_says(graph: IGraph) -> None:
    expected: Counter[str] = Counter()
    for name, count in operations(graph).items():
        op, _, which = name.partition(".")
        kind = _class(op, which)
        if kind is not None and count:
            expected[kind] += count
    found = arithmetic(GraphFacts(graph))
    assert {kind: found.count(kind) for kind in WORK if found.count(kind)} == dict(expected)
    assert found.exact


def test_softmax_by_hand() -> None:
    """64 rows of 32: two reductions, a subtraction, an exponential, a product; a reciprocal for each row."""
    found = arithmetic(GraphFacts(graphs.graph(graphs.SOFTMAX)))
    counts = {kind: found.count(kind) for kind in WORK}
    assert counts == {
        "add": 3 * 2048,
        "mul": 2048,
        "divide": 64,
        "transcendental": 2048,
        "contract": 0,
        "logic": 0,
        "convert": 0,
    }
    assert found.total == 5 * 2048 + 64
    assert found.intensity(16384) == (5 * 2048 + 64) / 16384


def test_a_contraction_is_two_m_n_k() -> None:
    found = arithmetic(GraphFacts(graphs.graph(graphs.STAGED)))
    assert found.count("contract") == found.total == 2 * 32 * 16 * 8


def test_a_contraction_with_tails_counts_what_is_valid() -> None:
    """Of k 16 only 13, of the rows of the last unit one in four."""
    body = graphs.STAGED.replace(
        "rc[0; (4,8); (8,1)], ra[0; (4,16); (16,1)], s",
        "rc[0; (4,8); (8,1); rows :29 - 4*pid], ra[0; (4,16); (16,1); cols :13], s",
    )
    assert arithmetic(GraphFacts(graphs.graph(body))).total == 2 * 29 * 13 * 8


def test_a_group_combines_its_partial_results() -> None:
    """64 numbers added by units, 8 partial results by leaders."""
    assert arithmetic(GraphFacts(graphs.graph(graphs.GROUP))).count("add") == 72


def test_width_of_an_operation() -> None:
    """Narrow floats compute in fp32; wider words and narrower integers take what they take."""
    from uir_tvm.explain.arithmetic import Operations

    words = {
        d: Operations("add", d, 1, True).words for d in ("fp64", "fp32", "fp16", "bf16", "int8", "int64")
    }
    assert words == {"fp64": 2, "fp32": 1, "fp16": 1, "bf16": 1, "int8": 0.25, "int64": 2}
