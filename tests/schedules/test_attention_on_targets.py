# SPDX-License-Identifier: Apache-2.0
"""What the attention recipe makes computes attention where it runs: on this CPU, and on the host models."""

from __future__ import annotations

import math
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm import hardware
from uir_tvm.device.run_text import run
from uir_tvm.igraph.rounds import limited
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.optimize import optimize
from uir_tvm.runtime.kernel import signature_of
from uir_tvm.schedule import apply_default
from uir_tvm.schedule.begin import begin
from uir_tvm.schedules import attention
from uir_tvm.schedules.attention.flash import flash_function
from uir_tvm.schedules.attention.folded import fold_heads
from uir_tvm.schedules.attention.parts import read_parts
from uir_tvm.target.cpu.passes import PASSES as CPU_PASSES
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import equivalent

from tests.as_programs import run_igraph
from tests.asked import every_two
from tests.extracted import extracted
from tests.open_functions import OpenFunction, attended, attention_of

from ..kernel_graph.programs import module
from .attention_kernels import ASCEND, FUSING, MODELS, SHAPES, graph_of, kernel, masked_reference

#: Heads of other sizes, on a CPU: of no multiple of a vector's rows too, and tokens in half precision.
WIDE = {
    "head of 80": ((2, 1), 5, 40, 80),
    "head of 192": ((2, 2), 9, 70, 192),
    "head of 256, decode": ((4, 1), 1, 130, 256),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("ragged", np.float32),
        ("grouped", np.float32),
        ("grouped decode", np.float32),
        ("grouped", np.float16),
        ("ragged", ml_dtypes.bfloat16),
        ("head of 80", np.float32),
        ("head of 192", np.float32),
        ("head of 256, decode", np.float16),
    ],
)
def test_the_kernel_of_a_cpu_is_right(name: str, dtype: Any) -> None:
    """Vectors of queries that no tile divides, a mask that lies across them, heads that share keys."""
    shape = (SHAPES | WIDE)[name]
    (heads, kv_heads), rows, keys, head = shape
    func = kernel(*shape, np.dtype(dtype).name)
    graph = optimize(graph_of(func, "cpu"), list(CPU_PASSES)).graph
    rng = np.random.default_rng(7)
    q, k, v = (
        rng.standard_normal((1, h, n, head)).astype(dtype)
        for h, n in ((heads, rows), (kv_heads, keys), (kv_heads, keys))
    )
    seen = rng.random((rows, keys)) < 0.8
    by_size = {q.size: [q], k.size: [k, v], seen.size: [seen]}
    shapes = [tuple(int(d) for d in p.shape) for p in func.params[:-1]]
    args = [by_size[math.prod(shape)].pop(0).reshape(shape) for shape in shapes]
    (result,) = run_igraph(graph, "uir-cpu", *args)
    group = heads // kv_heads
    want = masked_reference(q, k.repeat(group, 1), v.repeat(group, 1), seen)
    got = np.asarray(result).astype("float64").reshape(want.shape)
    # the result alone is rounded
    unit = {"float32": 1e-6, "float16": 2.0**-11, "bfloat16": 2.0**-8}[np.dtype(dtype).name]
    np.testing.assert_allclose(got, want, rtol=unit, atol=5e-6)


@pytest.mark.parametrize(("kind", "dtype"), [("cpu", "float32"), ("bang", "float16"), ("ascend", "float16")])
def test_what_units_found_of_the_keys_is_combined(kind: str, dtype: str) -> None:
    """Parts of which the last has a block less, and one that the mask closes all over."""
    heads, keys, head = 2, 700, 16
    func = kernel((heads, 1), 1, keys, head, dtype)
    model = MODELS.get(kind, ASCEND)
    parts = fold_heads(read_parts(Schedule(func, debug_mask="none")))
    tile = attrs.evolve(attention.tile_of(parts, model), keys=128, parts=4)
    graph = extracted(flash_function(func, parts, tile), model)
    equivalent(func, graph)
    rng = np.random.default_rng(9)
    q, k, v = (
        rng.standard_normal((1, h, n, head)).astype(dtype) for h, n in ((heads, 1), (1, keys), (1, keys))
    )
    seen = rng.random((1, keys)) < 0.8
    seen[:, 3 * 128 : 4 * 128] = False
    by_size = {q.size: [q], k.size: [k, v], seen.size: [seen]}
    shapes = [tuple(int(d) for d in p.shape) for p in func.params[:-1]]
    args = [by_size[math.prod(shape)].pop(0).reshape(shape) for shape in shapes]
    passes = list(CPU_PASSES) if kind == "cpu" else None
    (result,) = run_igraph(
        optimize(graph, passes).graph, f"uir-{kind}", *args, device="auto" if kind == "cpu" else "model"
    )
    want = masked_reference(q, k.repeat(heads, 1), v.repeat(heads, 1), seen)
    got = np.asarray(result).astype("float64").reshape(want.shape)
    np.testing.assert_allclose(got, want, atol=3e-6 if dtype == "float32" else 4 * 2.0**-11)


#: What is open, and how many units of a group stage keys together.
SHARED = {
    "keys": ([(1, 2, 13, 8), (1, 1, "s", 8), (1, 1, "s", 8)], 4),
    "batch": ([("b", 2, 9, 8), ("b", 1, "s", 8), ("b", 1, "s", 8)], 2),
    "queries": ([(1, 2, "s", 8), (1, 1, "s", 8), (1, 1, "s", 8)], 4),
}


@pytest.mark.parametrize("name", SHARED)
def test_units_of_a_group_share_keys_of_open_sizes(name: str) -> None:
    """Barriers stand where all units of a group come by, at any size: the host model finds no race."""
    shapes, units = SHARED[name]
    function = OpenFunction("attention", shapes, attention_of(True), attended(True), ranges={"s": (1, 40)})
    func = begin(function.func(), MODELS["cuda"])
    parts = fold_heads(read_parts(Schedule(func, debug_mask="none")))
    tile = attrs.evolve(attention.tile_of(parts, MODELS["cuda"]), rows=4, keys=16, units=units, stages=2)
    assert tile.staged
    graph = optimize(extracted(flash_function(func, parts, tile), MODELS["cuda"])).graph
    kernel = next(t for t in TARGETS.values() if t.kind == "cuda").lower(graph, signature_of(graph))
    for length in (1, 17, 40):
        sizes = {"b": 2, "s": length}
        inputs = function.inputs(sizes)
        ran = run(kernel, inputs, sizes={name: sizes[name] for name in function.sizes}).check()
        want = function.reference(*inputs)
        np.testing.assert_allclose(ran.outputs["out"].reshape(want.shape), want, atol=5e-6)


def causal(rows: int, keys: int, head: int = 16, dtype: str = "float32") -> tvm.tirx.PrimFunc:
    """Causal attention of two heads, whose last row sees all keys."""
    inputs = {
        "q": ((2, rows, head), dtype),
        "k": ((2, keys, head), dtype),
        "v": ((2, keys, head), dtype),
    }

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        product = emit(op.matmul(q, emit(op.permute_dims(k, [0, 2, 1]))))
        seen = relax.const(np.tri(rows, keys, keys - rows, dtype=bool))
        masked = emit(op.where(seen, product, relax.const(-math.inf, dtype)))
        return emit(op.matmul(emit(op.nn.softmax(masked, -1)), v))

    (node,) = build_with(module(inputs, body), FUSING).custom_ops
    return node.prim_func


@pytest.mark.parametrize(("rows", "keys", "ends"), [(320, 320, True), (70, 150, True), (40, 200, False)])
def test_blocks_behind_the_diagonal_are_left_out(rows: int, keys: int, ends: bool) -> None:
    """No operand is a mask, the loop over blocks ends at the diagonal, and numbers are right."""
    func = causal(rows, keys)
    assert len(func.params) == 4
    graph = graph_of(func, "cpu")
    freed, rounds = limited(optimize(graph, list(CPU_PASSES)).graph)
    assert bool(rounds) == ends  # where the first row sees 161 of 200 keys, no block is left out
    bounds = [
        bound for iop, _ in freed.walk() for s in iop.slices() for bound in s.valid if bound is not None
    ]
    assert not bounds or rows % 16
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((2, n, 16)).astype("float32") for n in (rows, keys, keys))
    (result,) = run_igraph(optimize(graph, list(CPU_PASSES)).graph, "uir-cpu", q, k, v)
    x = np.where(
        np.tri(rows, keys, keys - rows, dtype=bool), q.astype("float64") @ k.swapaxes(-1, -2), -np.inf
    )
    e = np.exp(x - x.max(-1, keepdims=True))
    np.testing.assert_allclose(
        np.asarray(result).reshape(q.shape), e / e.sum(-1, keepdims=True) @ v, atol=5e-6
    )


#: Rows, keys, element type, GPU, decisions of the tile, and how many of all rounds of all groups run.
WALKS = {
    "prefill": (256, 256, "float32", "a100", {}, 2 * 20, 2 * 32),
    "prefill, wgmma": (256, 256, "float16", "h200", {}, 2 * 20, 2 * 32),
    "three stages": (256, 256, "float16", "h200", {"stages": 3}, 2 * 20, 2 * 32),
    "whole keys, ragged rows": (250, 256, "float32", "a100", {}, 2 * 23, 2 * 32),
    "ragged keys": (200, 333, "float16", "a100", {}, 2 * 38, 2 * 44),
    "rows behind a cache": (20, 400, "float16", "a100", {}, None, None),
    "few rows behind a cache": (4, 400, "float16", "a100", {}, None, None),
    "a group in turns": (200, 200, "float32", "a100", {"groups": 3}, None, None),
}


@pytest.mark.parametrize("name", WALKS)
def test_units_that_share_keys_leave_out_blocks_together(name: str) -> None:
    """The printed loop ends at the last row of a group; whatever ends, the text runs without a fault."""
    rows, keys, dtype, gpu, decisions, ended, most = WALKS[name]
    model = hardware.get(gpu, "cuda")
    func = begin(causal(rows, keys, 32, dtype), model)
    parts = fold_heads(read_parts(Schedule(func, debug_mask="none")))
    tile = attrs.evolve(attention.tile_of(parts, model), keys=32, **decisions)
    graph = optimize(extracted(flash_function(func, parts, tile), model)).graph
    loops = {str(n.var): n for _, around in graph.walk() for n in around if "rounds" in n.attrs}
    if ended is not None:
        (loop,) = loops.values()
        told = [loop.attrs["rounds"].evaluate({"pid": pid}) for pid in range(graph.num_parallel)]
        units = int(graph.num_units)
        assert all(len(set(told[k : k + units])) == 1 for k in range(0, len(told), units))
        walked = [min(count, int(loop.extent)) for count in told[::units]]
        assert (sum(walked), int(loop.extent) * len(walked)) == (ended, most)
    kernel = next(t for t in TARGETS.values() if t.kind == "cuda").lower(graph, signature_of(graph))
    rng = np.random.default_rng(rows)
    q, k, v = (rng.standard_normal((2, n, 32)).astype(dtype) for n in (rows, keys, keys))
    ran = run(kernel, [q, k, v], sizes={}).check()
    (got,) = ran.outputs.values()
    seen = np.tri(rows, keys, keys - rows, dtype=bool)
    x = np.where(seen, q.astype("float64") @ k.swapaxes(-1, -2), -np.inf)
    e = np.exp(x - x.max(-1, keepdims=True))
    want = e / e.sum(-1, keepdims=True) @ v.astype("float64")
    atol = 2e-5 if dtype == "float32" else 4 * 2.0**-11
    np.testing.assert_allclose(got.astype("float64").reshape(want.shape), want, atol=atol)


def test_stock_lowering_of_the_online_form() -> None:
    """TVM's own lowering of the scheduled function computes what NumPy does."""
    example = attention.example()
    scheduled = apply_default(example.func, MODELS["cpu"])
    out = tvm.runtime.empty(example.expected[0].shape, "float32")
    built = tvm.compile(scheduled.with_attr("global_symbol", "main"), "llvm")
    built["main"](*[tvm.runtime.tensor(array) for array in example.inputs], out)
    np.testing.assert_allclose(out.numpy(), example.expected[0], atol=3e-6)


@pytest.mark.parametrize(
    ("kind", "dtype", "keys"),
    [
        ("cuda", "float16", 40),
        ("cuda", "bfloat16", 40),
        ("bang", "float16", 40),
        ("bang", "bfloat16", 40),
        # two blocks of keys: the cube core stores a product where it stored the last one
        ("ascend", "float16", 150),
    ],
)
def test_the_emitted_kernel_is_right_on_the_host_model(kind: str, dtype: str, keys: int) -> None:
    """Two heads on one head of keys, tails of rows and keys, a closed row: the printed text, run."""
    rows, head = 20, 16
    func = kernel((2, 1), rows, keys, head, dtype)
    graph = optimize(graph_of(func, kind)).graph
    rng = np.random.default_rng(5)
    narrow = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    q, k, v = (
        rng.standard_normal((1, heads, n, head)).astype(narrow)
        for heads, n in ((2, rows), (1, keys), (1, keys))
    )
    seen = rng.random((rows, keys)) < 0.8
    seen[3] = False
    by_shape = {q.shape: [q], k.shape: [k, v], seen.shape: [seen]}
    args = [by_shape[tuple(int(d) for d in p.shape)].pop(0) for p in func.params[:-1]]
    (result,) = run_igraph(graph, f"uir-{kind}", *args, device="model")
    want = masked_reference(q, k.repeat(2, 1), v.repeat(2, 1), seen)
    # Weights of at most 1 and a result up to 3 are each rounded once.
    unit = 2.0 ** (-8 if dtype == "bfloat16" else -11)
    got = np.asarray(result).astype("float64").reshape(want.shape)
    np.testing.assert_allclose(got, want, atol=2 * 3 * unit)


#: Any two of a kind of device, a shape and a dtype; all three with ``UIR_TEST_ALL=1``.
DECODED = every_two(
    ["cuda", "bang", "ascend"], [((1, 1), 64), ((2, 2), 300), ((3, 1), 65)], ["float32", "float16"]
)


@pytest.mark.parametrize(("kind", "shape", "dtype"), DECODED)
def test_decoding_on_the_host_model(kind: str, shape: tuple[tuple[int, int], int], dtype: str) -> None:
    """One query: its scores are one row, which a loop of one row makes a column; the printed text, run."""
    heads, keys = shape
    q_heads, kv_heads = heads
    func = kernel(heads, 1, keys, 16, dtype)
    graph = optimize(graph_of(func, kind)).graph
    rng = np.random.default_rng(keys)
    q, k, v = (
        rng.standard_normal((1, h, n, 16)).astype(dtype)
        for h, n in ((q_heads, 1), (kv_heads, keys), (kv_heads, keys))
    )
    seen = rng.random((1, keys)) < 0.8
    by_size = {q.size: [q], k.size: [k, v], seen.size: [seen]}
    shapes = [tuple(int(d) for d in p.shape) for p in func.params[:-1]]
    args = [by_size[math.prod(shape)].pop(0).reshape(shape) for shape in shapes]
    (result,) = run_igraph(graph, f"uir-{kind}", *args, device="model")
    group = q_heads // kv_heads
    want = masked_reference(q, k.repeat(group, 1), v.repeat(group, 1), seen)
    got = np.asarray(result).astype("float64").reshape(want.shape)
    np.testing.assert_allclose(got, want, atol=3e-6 if dtype == "float32" else 6 * 2.0**-11)
