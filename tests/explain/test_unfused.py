# SPDX-License-Identifier: Apache-2.0
"""Every pair of neighbours has a reason and a price."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from tvm import relax
from uir_tvm import kernel_graph
from uir_tvm.errors import ArtifactError
from uir_tvm.explain.unfused import borders
from uir_tvm.target import registry

from tests.kernel_graph.programs import check, constant, module
from tests.models import MODELS
from tests.models.imported import imported

op = relax.op
F32 = "float32"


def graph_of_small(name: str) -> dict[str, Any]:
    """The kernel graph of a small model, as JSON."""
    return json.loads(kernel_graph.build(imported(name), registry.resolve("uir-cpu").target).to_json())


def pairs(graph: dict[str, Any]) -> set[tuple[int, int]]:
    """(producer, consumer) of every tensor that one node writes and another reads."""
    writer = {name: k for k, node in enumerate(graph["nodes"]) for name in node["outputs"]}
    return {
        (writer[name], k)
        for k, node in enumerate(graph["nodes"])
        for name in node["inputs"]
        if name in writer
    }


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_edge_of_a_model_has_a_reason(name: str) -> None:
    graph = graph_of_small(name)
    entries = graph["why_not"]
    found = [(entry["producer_node"], entry["consumer_node"]) for entry in entries]
    assert len(found) == len(set(found)) and set(found) == pairs(graph) and found
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    for entry in entries:
        assert entry["reason"] and "another hero" not in entry["reason"], entry
        shared = set(graph["nodes"][entry["producer_node"]]["outputs"])
        shared &= set(graph["nodes"][entry["consumer_node"]]["inputs"])
        assert set(entry["tensors"]) == shared
        assert 0 < entry["saved_bytes"] <= 2 * sum(tensors[name]["bytes"] for name in shared)
    merged = borders(graph)
    assert sum(border.times for border in merged) == len(entries)
    assert sum(border.saved_bytes for border in merged) == sum(entry["saved_bytes"] for entry in entries)


def test_what_a_border_costs() -> None:
    """(6, 8) floats and a row of sums: reading back the row costs 32 bytes, and 32 to write it."""

    def body(emit, x):
        total = emit(op.sum(x, axis=[0], keepdims=True))
        return emit(op.divide(x, total))

    (border,) = borders(json.loads(check({"x": ((6, 8), F32)}, body).to_json()))
    assert (border.times, border.saved_bytes) == (1, 64)
    assert border.tensors[0].endswith("(1, 8) float32") and "repeated" in border.reason


def test_what_others_need_must_be_written_anyway() -> None:
    """The product has two readers: one kernel with either saves a reading of it, not the writing."""

    def body(emit, x):
        y = emit(op.matmul(x, constant(8, 16)))
        return emit(op.nn.softmax(y, axis=-1)), emit(op.nn.softmax(y, axis=0))

    graph = json.loads(check({"x": ((4, 8), F32)}, body).to_json())
    assert sorted(border.saved_bytes for border in borders(graph)) == [256, 256]


def chain(operator):
    """Products with an operator behind each."""

    def body(emit, x):
        for seed in range(3):
            x = emit(operator(emit(op.matmul(x, constant(8, 8, seed=seed)))))
        return x

    found = borders(json.loads(kernel_graph.build(module({"x": ((4, 8), F32)}, body)).to_json()))
    assert all(b.saved_bytes == b.times * 256 for b in found)
    return sorted((b.producer, b.consumer, b.times, b.reason.partition(":")[0]) for b in found)


def test_equal_borders_are_told_once() -> None:
    epilogue = "nn.log_softmax is no epilogue of library.matmul"
    assert [border[:3] for border in chain(op.nn.log_softmax)] == [
        ("library matmul", "log_softmax", 3),
        ("log_softmax", "library matmul", 2),
    ]
    assert chain(op.nn.log_softmax)[0][3] == epilogue


def test_borders_of_an_attention_have_its_reason() -> None:
    """Softmax between two products is one, which the last softmax has not behind it."""
    assert [border[:3] for border in chain(op.nn.softmax)] == [
        ("library matmul", "softmax", 1),
        ("library matmul", "softmax", 2),
        ("softmax", "library matmul", 2),
    ]
    assert [border[3] for border in chain(op.nn.softmax)][1:] == ["attention", "attention"]


def test_operators_that_tvm_cannot_merge_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that falls apart again has reasons between its own operators too."""
    assembly = importlib.import_module("uir_tvm.kernel_graph.assembly")
    real = assembly.interface

    def failing(group, needed):
        if len(group.ops) > 1:
            raise RuntimeError("no such merge")
        return real(group, needed)

    monkeypatch.setattr(assembly, "interface", failing)
    mod = module({"x": ((4, 8), F32)}, lambda emit, x: emit(op.nn.relu(emit(op.exp(x)))))
    graph = json.loads(kernel_graph.build(mod).to_json())
    assert len(graph["nodes"]) == 2 and pairs(graph) == {(0, 1)}
    (border,) = borders(graph)
    assert "could not be merged" in border.reason and "no such merge" in border.reason
    assert border.saved_bytes == 256


def test_an_old_file_is_refused_with_a_remedy() -> None:
    graph = {"nodes": [], "tensors": [], "why_not": [{"producer": "a", "consumer": "b", "reason": "c"}]}
    with pytest.raises(ArtifactError, match="compile the model again"):
        borders(graph)
