# SPDX-License-Identifier: Apache-2.0
"""The whole stage: bad input, fallbacks, the summary, and the real models on TVM's own lowering."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tvm
from tvm import relax
from uir_tvm.errors import ShapeError
from uir_tvm.kernel_graph import build, dedup, memory_plan, relax_passes, to_relax

from .programs import arguments, assert_close, check, constant, kinds, module, run, run_graph

op = relax.op

# Nodes: library and custom operators of the small models, and distinct kernels. A change here is a change
# of what users get: explain it.
MODELS = {
    "minilm": (12, 11, 8),
    "gpt2": (13, 7, 3),
    "llama": (13, 13, 6),
    "vit": (14, 8, 4),
    "resnet": (7, 2, 2),
}


@pytest.mark.parametrize("name", list(MODELS))
def test_models_agree_with_torch(name: str) -> None:
    """Small models, kernels unscheduled: the graph alone is right, and as small as it should be."""
    torch = pytest.importorskip("torch")
    from uir_tvm.frontend import from_torch

    from tests.models import MODELS as ENTRIES

    model, inputs = ENTRIES[name].build("small")
    graph = build(from_torch(model, inputs))
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


def test_a_symbolic_dimension_is_refused() -> None:
    n = tvm.tirx.Var("n", "int64")
    with pytest.raises(ShapeError, match="not fixed"):
        build(module({"x": ((n, 4), "float32")}, lambda emit, x: emit(op.exp(x))))


def test_an_empty_tensor_is_refused() -> None:
    with pytest.raises(ShapeError, match="no elements"):
        build(module({"x": ((0, 4), "float32")}, lambda emit, x: emit(op.exp(x))))


def test_summary_and_json_say_the_same() -> None:
    def body(emit, x):
        return emit(op.nn.softmax(emit(op.matmul(x, constant(8, 8)))))

    graph = check({"x": ((4, 8), "float32")}, body)
    summary = graph.summary()
    assert (summary["operators"], summary["library"], summary["custom"], summary["kernels"]) == (2, 1, 1, 1)
    # matmul: x, weight, result; softmax: result, output.
    assert summary["bytes_after"] == summary["bytes_before"] == 4 * (32 + 64 + 32 + 32 + 32)
    parsed = json.loads(graph.to_json())
    assert parsed["summary"] == summary
    assert [node["type"] for node in parsed["nodes"]] == ["library", "custom"]
    assert parsed["nodes"][1]["kernel"] in graph.kernels
    assert parsed["why_not"][0]["reason"] == "nn.softmax is no epilogue of library.matmul"


def test_kernels_carry_their_hero_and_operators() -> None:
    graph = build(module({"x": ((4, 8), "float32")}, lambda emit, x: emit(op.nn.softmax(emit(op.exp(x))))))
    (function,) = graph.kernels.values()
    assert str(function.attrs["uir.hero"]) == "rowwise"
    assert [str(name) for name in function.attrs["uir.ops"]] == ["exp", "nn.softmax"]


def test_intermediates_share_buffers() -> None:
    """Ten kernels in a row need two buffers and the output, not ten."""

    def body(emit, x):
        for axis in [0, 1] * 5:
            x = emit(op.nn.softmax(x, axis=axis))
        return x

    graph = build(module({"x": ((32, 32), "float32")}, body))
    assert len(graph.custom_ops) == 10
    plan = memory_plan(to_relax(graph))
    assert plan.tensors == 10 * 4096
    assert plan.planned == 3 * 4096


def test_relax_passes_take_models_and_graphs_alike() -> None:
    inputs = {"x": ((4, 8), "float32")}
    mod = module(
        inputs, lambda emit, x: (emit(op.nn.softmax(emit(op.matmul(x, constant(8, 8))))), emit(op.exp(x)))
    )
    args = arguments(inputs)
    expected = run(mod, args)
    for form in (mod, to_relax(build(mod))):
        assert_close(run(form, args, relax_passes("llvm")), expected)


def test_an_operator_of_several_results() -> None:
    """topk is no operator of the table: it stays whole, and its readers find both results."""

    def body(emit, x):
        both = emit(op.topk(x, k=3))
        return emit(op.exp(emit(relax.TupleGetItem(both, 0)))), emit(relax.TupleGetItem(both, 1))

    x = np.random.default_rng(0).permutation(32).reshape(4, 8).astype("float32")
    values = -np.sort(-x, axis=-1)[:, :3]
    graph = build(module({"x": ((4, 8), "float32")}, body))
    assert "opaque" in kinds(graph)
    first, second = run_graph(graph, [x])
    np.testing.assert_allclose(first, np.exp(values), rtol=1e-6)
    np.testing.assert_array_equal(np.take_along_axis(x, second.astype("int64"), -1), values)
