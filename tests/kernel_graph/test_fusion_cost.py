# SPDX-License-Identifier: Apache-2.0
"""Prices of fusion: what they grow with, and which way they decide, on every target."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tvm import relax
from uir_tvm import CompileOptions, hardware
from uir_tvm.errors import UirError
from uir_tvm.kernel_graph import KernelGraph, build
from uir_tvm.kernel_graph.fusion_cost import LEAST_GAIN, FusionCost, KernelWork
from uir_tvm.kernel_graph.program import Value
from uir_tvm.options import FUSIONS
from uir_tvm.target import registry

from .programs import arguments, assert_close, constant, module, run_graph

op = relax.op
F32, F16 = "float32", "float16"
#: Every target, by models that do not depend on the machine of the tests.
MODELS = {"uir-cpu": "avx2-4core", "uir-cuda": "h200", "uir-ascend": "910b2", "uir-bang": "mlu370-x8"}
MIB = 1 << 20
EACH = pytest.mark.parametrize("target", list(MODELS))


def cost_of(target: str) -> FusionCost:
    return FusionCost(hardware.get(MODELS[target], registry.get(target).kind))


def graph_of(target: str, inputs: Any, body: Any, fusion: str = FUSIONS[0]) -> KernelGraph:
    record = registry.get(target)
    chosen = record.target(MODELS[target], record.places[-1].name)
    return build(module(inputs, body), chosen, fusion=fusion)


def decided(graph: KernelGraph, candidate: str) -> Any:
    (found,) = [each for each in graph.fusion if each.candidate == candidate]
    return found


def work(read: int, written: int, operations: float = 0.0, units: int = 1 << 20) -> KernelWork:
    a, b = Value("a", (1,), F32), Value("b", (1,), F32)
    return KernelWork({a: read}, {b: written}, operations, units)


# --- what a price grows with ---------------------------------------------------------------------


@EACH
def test_a_price_never_falls_with_bytes_operations_or_kernels(target: str) -> None:
    cost = cost_of(target)

    def seconds(*kernels: KernelWork) -> float:
        return cost.price(kernels).seconds

    sizes = [1 << shift for shift in range(8, 30, 2)]
    by_bytes = [seconds(work(size, size)) for size in sizes]
    by_operations = [seconds(work(MIB, MIB, 64.0 * size)) for size in sizes]
    for row in (by_bytes, by_operations):
        assert row == sorted(row) and row[-1] > 2 * row[0] > 0
    one = work(MIB, MIB)
    assert seconds(one, one) > seconds(one)


@EACH
def test_few_units_take_longer(target: str) -> None:
    cost = cost_of(target)
    operations = 1e10
    few = cost.price([work(MIB, MIB, operations, units=1)]).seconds
    many = cost.price([work(MIB, MIB, operations)]).seconds
    assert few > 3 * many


def test_what_a_cache_keeps_is_read_sooner() -> None:
    """The second kernel reads what the first wrote: from the NPU's cache while that holds all, else dram."""
    cost = cost_of("uir-ascend")
    passed = Value("y", (1,), F32)

    def second(size: int) -> float:
        """Seconds of the second kernel for each byte that it reads."""
        ends = [Value(name, (1,), F32) for name in "ab"]
        first = KernelWork({ends[0]: size}, {passed: size}, 0.0, 1 << 20)
        last = KernelWork({passed: size}, {ends[1]: 1024}, 0.0, 1 << 20)
        return (cost.price([first, last]).seconds - cost.price([first]).seconds) / size

    assert second(64 * MIB) < 0.7 * second(256 * MIB)


def test_the_rule_stands_unless_a_tenth_is_at_stake() -> None:
    """Whichever way the rule goes: a little cheaper is not enough to leave it."""
    cost = cost_of("uir-bang")
    whole = work(100 * MIB, 0)
    for share, decisive in ((0.97, False), (0.5, True)):
        less = work(int(share * 100 * MIB), 0)
        assert (cost.price([less]).seconds < LEAST_GAIN * cost.price([whole]).seconds) is decisive
        leaves = cost.decide("siblings", "x", ["k"], [less], [whole], joins=True)
        joins = cost.decide("siblings", "x", ["k"], [whole], [less], joins=False)
        assert (leaves.merged, joins.merged) == (not decisive, decisive)


# --- decisions both ways, on every target --------------------------------------------------------


def _sum_of_tan(emit: Any, x: Any) -> Any:
    return emit(op.sum(emit(op.tan(x)), axis=[1]))


@EACH
@pytest.mark.parametrize(("columns", "merged"), [(64, True), (1 << 26, False)])
def test_a_row_alone_is_computed_by_all_units_where_it_is_long(
    target: str, columns: int, merged: bool
) -> None:
    """The sum keeps one unit, or one group, busy: what comes before it may use all of them."""
    graph = graph_of(target, {"x": ((1, columns), F32)}, _sum_of_tan)
    assert len(graph.nodes) == (1 if merged else 2)
    found = [each for each in graph.fusion if each.candidate == "few rows"]
    assert all(each.merged is merged for each in found) and (found or merged)
    if not merged:
        assert "units" in graph.why_not[0].reason and "modelled" in graph.why_not[0].reason


@EACH
@pytest.mark.parametrize(("shape", "merged"), [((2, 64), True), ((1 << 16, 2048), False)])
def test_a_dear_row_is_repeated_where_it_has_few_readers(
    target: str, shape: tuple[int, int], merged: bool
) -> None:
    def body(emit: Any, row: Any, x: Any) -> Any:
        return emit(op.add(emit(op.exp(row)), x))

    graph = graph_of(target, {"row": (shape[1:], F32), "x": (shape, F32)}, body)
    assert decided(graph, "repeated").merged is merged
    assert len(graph.nodes) == (1 if merged else 2)


def _two_ways(of: Any) -> Any:
    def body(emit: Any, *given: Any) -> Any:
        value = emit(of(*given))
        return emit(op.sum(value, axis=[1])), emit(op.sum(value, axis=[0]))

    return body


@EACH
def test_a_sum_of_a_row_and_a_column_is_never_stored(target: str) -> None:
    """Two vectors make a matrix that two kernels read: both compute it."""
    inputs = {"c": ((2048, 1), F32), "r": ((1024,), F32)}
    graph = graph_of(target, inputs, _two_ways(op.add))
    found = decided(graph, "recomputed")
    assert found.merged and found.together.bytes < found.apart.bytes / 100
    assert found.together.operations > found.apart.operations
    assert all(tensor.bytes < 2048 * 1024 for node in graph.nodes for tensor in node.outputs)


@EACH
def test_a_dear_function_of_a_matrix_is_stored(target: str) -> None:
    graph = graph_of(target, {"x": ((2048, 1024), F16)}, _two_ways(lambda x: op.tan(op.tan(x))))
    assert not decided(graph, "recomputed").merged
    assert any(tensor.shape == (2048, 1024) for node in graph.nodes for tensor in node.outputs)


@EACH
@pytest.mark.parametrize("shared", ["all", "a row"])
def test_siblings_join_where_they_share_what_they_read(target: str, shared: str) -> None:
    def norms(emit: Any, x: Any) -> Any:
        rows = [constant(1024, seed=seed) for seed in range(4)]
        return tuple(emit(op.nn.layer_norm(x, *rows[at : at + 2], axes=[-1])) for at in (0, 2))

    def sums(emit: Any, row: Any, x: Any, y: Any) -> Any:
        return emit(op.add(x, row)), emit(op.add(y, row))

    large = ((1 << 15, 1024), F32)
    inputs = {"x": large} if shared == "all" else {"row": ((1024,), F32), "x": large, "y": large}
    graph = graph_of(target, inputs, norms if shared == "all" else sums)
    assert decided(graph, "siblings").merged is (shared == "all")
    assert len(graph.nodes) == (1 if shared == "all" else 2)


# --- what nobody prices --------------------------------------------------------------------------


def test_a_result_is_stored_though_its_readers_could_compute_it() -> None:
    """It is the caller's, and there anyway."""

    def body(emit: Any, c: Any, r: Any) -> Any:
        value = emit(op.add(c, r))
        return value, emit(op.sum(value, axis=[1])), emit(op.sum(value, axis=[0]))

    graph = graph_of("uir-cpu", {"c": ((64, 1), F32), "r": ((32,), F32)}, body, "merged")
    assert not [each for each in graph.fusion if each.candidate == "recomputed"]


def test_siblings_of_which_one_waits_for_the_other_stay_two() -> None:
    """Through a third kernel: one kernel of both would wait for itself."""

    def body(emit: Any, x: Any) -> Any:
        total = emit(op.sum(x, axis=[1], keepdims=True))
        turned = emit(op.nn.softmax(emit(op.nn.softmax(emit(op.add(total, x)), axis=0)), axis=1))
        return total, emit(op.sum(emit(op.multiply(x, turned)), axis=[1]))

    inputs = {"x": ((6, 8), F32)}
    given = arguments(inputs)
    apart, merged = (graph_of("uir-cpu", inputs, body, fusion) for fusion in ("apart", "merged"))
    assert_close(run_graph(merged, given), run_graph(apart, given))


@pytest.mark.parametrize(
    "of", [op.add, lambda c, r: op.multiply(op.exp(c), r)], ids=["plain", "with an operator before it"]
)
def test_results_are_equal_either_way(of: Any) -> None:
    inputs = {"c": ((6, 1), F32), "r": ((8,), F32)}
    given = arguments(inputs)
    graphs = [graph_of("uir-cpu", inputs, _two_ways(of), fusion) for fusion in FUSIONS]
    counts = [sum(len(node.outputs) for node in graph.nodes) for graph in graphs]
    assert counts[2] > counts[1] == 2
    expected = run_graph(graphs[2], given)
    for graph in graphs[:2]:
        assert_close(run_graph(graph, given), expected)


def test_decisions_are_in_the_json_of_the_graph() -> None:
    graph = graph_of("uir-cpu", {"c": ((512, 1), F32), "r": ((512,), F32)}, _two_ways(op.add))
    (entry,) = json.loads(graph.to_json())["fusion"]
    assert entry["candidate"] == "recomputed" and entry["merged"] is True and len(entry["kernels"]) == 2
    assert 0 < entry["together"]["seconds"] < entry["apart"]["seconds"]


def test_an_unknown_way_to_decide_is_refused() -> None:
    with pytest.raises(UirError, match="'cheap' is no way to decide fusion"):
        CompileOptions(fusion="cheap")
