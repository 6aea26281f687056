# SPDX-License-Identifier: Apache-2.0
"""The whole stage: bad input, fallbacks, the summary, and the real models on TVM's own lowering."""

from __future__ import annotations

import importlib

import pytest
import uir_tvm
from tvm import relax
from uir_tvm.kernel_graph import SharedConstants, build, dedup, sharing
from uir_tvm.target import registry

from .programs import arguments, assert_close, constant, module, run, run_graph

op = relax.op

# Nodes: library and custom operators of the small models, and distinct kernels. A change here is a change
# of what users get: explain it.
MODELS = {
    "minilm": (8, 11, 8),
    "gpt2": (9, 7, 3),
    "llama": (9, 13, 6),
    "vit": (10, 8, 4),
    "resnet": (7, 2, 2),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_models_agree_with_torch(name: str) -> None:
    """Small models, kernels unscheduled: the graph alone is right, and as small as it should be."""
    torch = pytest.importorskip("torch")
    from tests.models import MODELS as ENTRIES
    from tests.models.imported import imported

    model, inputs = ENTRIES[name].build("small")
    graph = build(imported(name))
    assert (len(graph.library_ops), len(graph.custom_ops), len(graph.kernels)) == MODELS[name]
    assert graph.fallbacks == ()
    assert graph.fused_bytes < graph.unfused_bytes
    with torch.no_grad():
        expected = [model(*inputs).numpy()]
    # fp32 sums of at most a few hundred terms in another order, through two layers.
    assert_close(run_graph(graph, [array.numpy() for array in inputs]), expected, 1e-5)


def test_a_group_that_cannot_be_merged_becomes_single_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build never fails for a fusion, and the graph says what happened."""
    merge = dedup.merge

    def refuse_groups(kernel, name):
        if len(kernel.group.ops) > 1:
            raise RuntimeError("no merge today")
        return merge(kernel, name)

    monkeypatch.setattr(dedup, "merge", refuse_groups)
    inputs = {"x": ((4, 8), "float32")}
    mod = module(inputs, lambda emit, x: emit(op.nn.softmax(emit(op.exp(emit(op.multiply(x, x)))))))
    graph = build(mod)
    assert len(graph.custom_ops) == 3
    assert "no merge today" in graph.fallbacks[0]
    args = arguments(inputs)
    assert_close(run_graph(graph, args), run(mod, args))


@pytest.mark.parametrize("operators", [1, 3])
def test_a_fault_of_ours_is_not_told_as_one_of_tvm(monkeypatch: pytest.MonkeyPatch, operators: int) -> None:
    """It leaves by its own class; where faults fall back, a group is split, and the graph says why."""
    stage = importlib.import_module("uir_tvm.kernel_graph.assembly")
    whole = stage.interface

    def broken(group, needed):
        return None if len(group.ops) == operators else whole(group, needed)

    def body(emit, x):
        return (
            emit(op.nn.softmax(emit(op.exp(emit(op.multiply(x, x)))))) if operators > 1 else emit(op.exp(x))
        )

    monkeypatch.setattr(stage, "interface", broken)
    mod = module({"x": ((4, 8), "float32")}, body)
    with pytest.raises(AttributeError):
        build(mod)
    if operators == 1:  # there is nothing to split
        with pytest.raises(AttributeError):
            build(mod, faults="fall back")
        return
    graph = build(mod, faults="fall back")
    assert len(graph.custom_ops) == operators
    assert "a fault of uir_tvm: AttributeError" in graph.fallbacks[0]


def test_without_fusion_every_operator_is_a_kernel() -> None:
    """But for the bias of a product, which the library adds; views cost nothing, and results are the same."""

    def body(emit, x, r):
        y = emit(op.add(emit(op.matmul(x, constant(8, 12))), constant(12, seed=1)))
        halves = emit(op.reshape(emit(op.nn.silu(y)), (4, 2, 6)))
        return emit(op.nn.softmax(emit(op.add(emit(op.exp(halves)), r))))

    inputs = {"x": ((4, 8), "float32"), "r": ((4, 2, 6), "float32")}
    mod = module(inputs, body)
    apart, fused = build(mod, fuse=False), build(mod)
    assert [node.ops for node in apart.library_ops] == [("library.matmul", "add")]
    assert [node.ops for node in apart.custom_ops] == [("nn.silu",), ("exp",), ("add",), ("nn.softmax",)]
    assert apart.fused_bytes > fused.fused_bytes and len(fused.nodes) < len(apart.nodes)
    assert {entry.reason for entry in apart.why_not} == {"every operator was asked to be a kernel of its own"}
    args = arguments(inputs)
    assert_close(run_graph(apart, args), run_graph(fused, args))


def test_equal_weights_are_one_constant() -> None:
    """Packed for the library or read by kernels, in one graph and in all graphs of a context."""

    def twice(emit, x):
        first = emit(op.matmul(x, constant(64, 64)))
        second = emit(op.matmul(emit(op.multiply(first, constant(64, 64))), constant(64, 64)))
        return emit(op.add(second, constant(64, 64)))

    mod = module({"x": ((64, 64), "float32")}, twice)
    target = registry.resolve("uir-cpu").target
    graph = build(mod, target)
    weights = {id(tensor): tensor for node in graph.nodes for tensor in node.inputs if tensor.constant}
    assert sorted(tensor.dtype for tensor in weights.values()) == ["float32", "uint8"]
    with sharing(SharedConstants()):
        graphs = [build(mod, target) for _ in range(2)]
    kept = [{id(t.constant) for node in one.nodes for t in node.inputs if t.constant} for one in graphs]
    assert kept[0] == kept[1] and len(kept[0]) == 2
    (x,) = arguments({"x": ((64, 64), "float32")})
    weight = constant(64, 64).value.numpy()
    wanted = ((x @ weight) * weight) @ weight + weight
    assert_close(run_graph(graph, [x]), [wanted], 1e-5)


def test_a_normalised_module_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from a front end is in that form already: compiling a model brings it there once."""
    torch = pytest.importorskip("torch")
    from tests.models.imported import imported

    given = imported("minilm")
    stage = importlib.import_module("uir_tvm.kernel_graph.build")
    monkeypatch.setattr(stage, "normalize", lambda mod: pytest.fail("normalised again"))
    assert build(given, "uir-cpu", normalized=True).kernels
    program = torch.export.export(torch.nn.Softmax(-1), (torch.randn(3, 5),))
    uir_tvm.compile(program, name="once")
