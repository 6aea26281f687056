# SPDX-License-Identifier: Apache-2.0
"""The attention recipe: what it makes is an online form that computes the same, on every kind of hardware."""

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
from uir_tvm.errors import RecipeError, ScheduleError
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.rounds import limited
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.library.library_tables import AttentionLimits
from uir_tvm.optimize import optimize
from uir_tvm.runtime.kernel import run_igraph, signature_of
from uir_tvm.schedule import apply_default
from uir_tvm.schedule.begin import begin
from uir_tvm.schedules import attention, contraction
from uir_tvm.schedules.attention.even import even_tile
from uir_tvm.schedules.attention.flash import flash_function
from uir_tvm.schedules.attention.folded import fold_heads
from uir_tvm.schedules.attention.parts import Extents, UsualExtents, read_parts
from uir_tvm.schedules.attention.tile import FlashTile
from uir_tvm.schedules.attention.work import dealt_groups
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target.bang.lower import lower as lower_bang
from uir_tvm.target.cpu.library import TABLE as CPU
from uir_tvm.target.cpu.passes import PASSES as CPU_PASSES
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify import equivalent

from tests.asked import asked
from tests.extracted import extracted
from tests.open_functions import CACHED, OpenFunction, attended, attention_of

from ..kernel_graph.programs import module

MODELS = {
    "cpu": hardware.get("avx512-2core"),
    "cuda": hardware.get("a100", "cuda"),
    "bang": hardware.get("mlu370-x8", "bang"),
}
ASCEND = hardware.get("910b2", "ascend")
FUSING = attrs.evolve(
    CPU, attention=AttentionLimits(frozenset({"float32", "float16", "bfloat16"}), 256), tiled_attention=()
)


def kernel(
    heads: tuple[int, int], rows: int, keys: int, head: int, dtype: str = "float32", safe: bool = False
) -> tvm.tirx.PrimFunc:
    """The attention kernel that the kernel graph makes: q heads, kv heads, masked, result (b, m, h, d)."""
    q_heads, kv_heads = heads
    inputs = {
        "q": ((1, q_heads, rows, head), dtype),
        "k": ((1, kv_heads, keys, head), dtype),
        "v": ((1, kv_heads, keys, head), dtype),
        "seen": ((rows, keys), "bool"),
    }

    def body(emit: Any, q: Any, k: Any, v: Any, seen: Any) -> Any:
        group = q_heads // kv_heads
        if group > 1:
            wide = [emit(op.reshape(x, (1, kv_heads, 1, keys, head))) for x in (k, v)]
            wide = [emit(op.broadcast_to(x, (1, kv_heads, group, keys, head))) for x in wide]
            k, v = (emit(op.reshape(x, (1, q_heads, keys, head))) for x in wide)
        zero, low = relax.const(0.0, dtype), relax.const(-math.inf, dtype)
        product = emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))
        scaled = emit(op.multiply(product, relax.const(head**-0.5, dtype)))
        if not safe:
            masked = emit(op.where(seen, scaled, low))
            attended = emit(op.matmul(emit(op.nn.softmax(masked, -1)), v))
        else:
            masked = emit(op.add(scaled, emit(op.where(seen, zero, low))))
            weights = emit(op.nn.softmax(masked, -1))
            flags = emit(op.where(seen, relax.const(1, "int32"), relax.const(0, "int32")))
            row = emit(op.greater(emit(op.max(flags, axis=-1, keepdims=True)), relax.const(0, "int32")))
            attended = emit(op.matmul(emit(op.where(row, weights, zero)), v))
        return emit(op.reshape(emit(op.permute_dims(attended, [0, 2, 1, 3])), (1, rows, q_heads * head)))

    graph = build_with(module(inputs, body), FUSING)
    (node,) = [node for node in graph.custom_ops if node.hero == "attention"]
    return node.prim_func


def graph_of(func: tvm.tirx.PrimFunc, kind: str) -> IGraph:
    model = MODELS[kind] if kind in MODELS else ASCEND
    scheduled = apply_default(func, model)
    assert scheduled.attrs["uir.recipe"] == "attention"
    graph = extracted(scheduled, model)
    return graph


SHAPES = {
    "one block": ((2, 2), 16, 32, 16),
    "ragged": ((2, 2), 37, 150, 16),
    "grouped": ((4, 2), 20, 70, 16),
    "decode": ((2, 2), 1, 300, 32),
    "grouped decode": ((8, 2), 1, 130, 16),
}


#: Heads of other sizes, on a CPU: of no multiple of a vector's rows too, and tokens in half precision.
WIDE = {
    "head of 80": ((2, 1), 5, 40, 80),
    "head of 192": ((2, 2), 9, 70, 192),
    "head of 256, decode": ((4, 1), 1, 130, 256),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", SHAPES)
def test_the_online_form_is_equivalent(name: str, kind: str) -> None:
    """In exact arithmetic, and on numbers: several blocks of keys, tails of rows and keys, shared heads."""
    func = kernel(*SHAPES[name])
    graph = graph_of(func, kind)
    assert "field" in equivalent(func, graph).methods


@pytest.mark.parametrize("dtype", asked(["bfloat16"], ["float16", "bfloat16"]))
def test_narrow_operands_stay_narrow(dtype: str) -> None:
    """Contractions take operands as they are in memory and sum in fp32; statistics are fp32.

    A CPU widens them on chip, once for all rows.
    """
    func = kernel((2, 1), 40, 96, 16, dtype)
    for kind in MODELS:
        graph = graph_of(func, kind)
        products = [iop for iop, _ in graph.walk() if iop.op == "contract"]
        narrow = {"float16": "fp16", "bfloat16": "bf16"}[dtype]
        assert [str(iop.dtype) for iop in products] == ["fp32", "fp32"]
        held = "fp32" if kind == "cpu" else narrow
        assert {str(piece.pointer.dtype) for iop in products for piece in iop.sources} == {held}
        reductions = {str(iop.dtype) for iop, _ in graph.walk() if iop.op == "reduce"}
        assert reductions == {"fp32"}
        equivalent(func, graph)


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


def test_units_share_the_keys_of_few_rows() -> None:
    """As many as pay for combining what they found, and none where there are batches for all of them."""
    for kind, heads, keys, count in (
        ("bang", (8, 2), 1024, 8),
        ("bang", (8, 8), 512, 1),
        ("cpu", (3, 3), 2000, 2),
    ):
        parts = fold_heads(read_parts(Schedule(kernel(heads, 1, keys, 16), debug_mask="none")))
        assert attention.tile_of(parts, MODELS[kind]).parts == count


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


def test_units_share_the_valid_part_of_a_cache() -> None:
    """Two heads of keys on 16 clusters: whatever the length, every unit has nearly as many blocks."""
    func = begin(CACHED.func(), MODELS["bang"])
    parts = fold_heads(read_parts(Schedule(func, debug_mask="none")))
    assert attention.tile_of(parts, MODELS["bang"]).parts > 4
    graph = graph_of(CACHED.func(), "bang")
    for length in (1, 128, 129, 2000):
        inputs = CACHED.inputs({"s": length})
        (found,) = interpreter.run(graph, *inputs, sizes={"s": length})
        np.testing.assert_allclose(found, CACHED.reference(*inputs).reshape(-1), atol=5e-6)


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


@pytest.mark.parametrize("kind", ["cpu", "bang"])
def test_units_share_keys_of_heads_and_values_of_open_size(kind: str) -> None:
    """Two heads of a group as rows, whose keys units have parts of; tiles are as wide as heads may be."""
    shapes = [(1, 4, 1, "h"), (1, 2, 700, "h"), (1, 2, 700, "w")]
    function = OpenFunction(
        "attention", shapes, attention_of(False), attended(False), ranges={"h": (1, 24), "w": (0, 40)}
    )
    func = begin(function.func(), MODELS[kind])
    parts = fold_heads(read_parts(Schedule(func, debug_mask="none")))
    assert (parts.usual.head, parts.usual.width) == (24, 40)
    tile = attrs.evolve(attention.tile_of(parts, MODELS[kind]), keys=128, parts=4)
    graph = extracted(flash_function(func, parts, tile), MODELS[kind])
    for sizes in ({"h": 1, "w": 40}, {"h": 17, "w": 1}, {"h": 24, "w": 0}):
        inputs = function.inputs(sizes)
        (found,) = interpreter.run(graph, *inputs, sizes=sizes)
        np.testing.assert_allclose(found, function.reference(*inputs).reshape(-1), atol=5e-6)


def test_a_head_without_an_upper_bound_is_refused() -> None:
    function = OpenFunction(
        "attention", [(1, 2, 9, "h"), (1, 2, 9, "h"), (1, 2, 9, 8)], attention_of(False), max
    )
    with pytest.raises(RecipeError, match="Elements of a head, h, have no upper bound"):
        read_parts(Schedule(function.func(), debug_mask="none"))


def causal(rows: int, keys: int, head: int = 16) -> tvm.tirx.PrimFunc:
    """Causal attention of two heads, whose last row sees all keys."""
    inputs = {
        "q": ((2, rows, head), "float32"),
        "k": ((2, keys, head), "float32"),
        "v": ((2, keys, head), "float32"),
    }

    def body(emit: Any, q: Any, k: Any, v: Any) -> Any:
        product = emit(op.matmul(q, emit(op.permute_dims(k, [0, 2, 1]))))
        seen = relax.const(np.tri(rows, keys, keys - rows, dtype=bool))
        masked = emit(op.where(seen, product, relax.const(-math.inf, "float32")))
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


def test_scores_stay_on_chip() -> None:
    """Dram holds the operands and the result alone, and each key is loaded once for a row of tiles."""
    graph = graph_of(kernel((2, 2), 64, 256, 16), "cuda")
    assert {str(p.role) for p in graph.pointers if p.level == "dram"} == {"in", "out"}
    shared = [p for p in graph.pointers if p.level == "sram"]
    assert len(shared) == 2  # keys and values, which the units of a group load together
    (loop,) = [node for node in graph.body if hasattr(node, "extent")]
    assert loop.attrs["pipeline"] == 2


def masked_reference(q: Any, k: Any, v: Any, seen: Any) -> Any:
    x = np.where(seen, q.astype("float64") @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(-1, keepdims=True))
        out = e / e.sum(-1, keepdims=True) @ v.astype("float64")
    return out.transpose(0, 2, 1, 3)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("safe", [False, True])
def test_closed_blocks_and_closed_rows(kind: str, safe: bool) -> None:
    """A row whose first blocks are closed is right; one without any open key is NaN, or zeros if safe."""
    rows, keys = 5, 150
    rng = np.random.default_rng(3)
    seen = np.zeros((rows, keys), bool)
    seen[0], seen[1, 140:], seen[2, :3], seen[4, 70:80] = True, True, True, True  # row 3 stays closed
    q, k, v = (rng.standard_normal((1, 2, n, 16)).astype("float32") for n in (rows, keys, keys))
    func = kernel((2, 2), rows, keys, 16, safe=safe)
    mask = np.where(seen, 0, -np.inf).astype("float32") if safe else seen
    by_shape = {(1, 2, rows, 16): [q], (1, 2, keys, 16): [k, v], (rows, keys): [mask]}
    args = [by_shape[tuple(int(d) for d in p.shape)].pop(0) for p in func.params[:-1]]
    (result,) = interpreter.run(graph_of(func, kind), *args)
    want = masked_reference(q, k, v, seen)
    if safe:
        want[:, 3] = 0
    np.testing.assert_allclose(np.asarray(result).reshape(want.shape), want, atol=3e-6)


def test_heads_of_a_group_are_rows_when_decoding() -> None:
    """One query of 8 heads on 2 key heads: 2 tiles of 4 rows, not 8 of one; other shapes are left alone."""
    parts = read_parts(Schedule(kernel((8, 2), 1, 130, 16), debug_mask="none"))
    folded = fold_heads(parts)
    assert (parts.batch, parts.rows) == ((1, 8), 1)
    assert (folded.batch, folded.rows) == ((1, 2), 4)
    for other in (kernel((8, 8), 1, 130, 16), kernel((4, 2), 3, 130, 16)):
        parts = read_parts(Schedule(other, debug_mask="none"))
        assert fold_heads(parts) is parts


def test_tiles_shrink_to_what_a_unit_holds() -> None:
    """With heads of 256 a warp takes shorter blocks of keys, and the graph still fits (verified)."""
    func = kernel((1, 1), 16, 128, 128)
    parts = read_parts(Schedule(func, debug_mask="none"))
    small = attention.tile_of(parts, MODELS["cuda"])
    assert small.keys < attention.ATTENTION_SPACES["cuda"].key_bytes // 4
    graph_of(func, "cuda")


def test_cores_of_a_cluster_share_nothing_on_an_mlu() -> None:
    """Its sram takes a whole cluster, whatever the rows: any core takes any tile, with its own keys."""
    for rows in (3, 500):
        graph = graph_of(kernel((2, 2), rows, 130, 16), "bang")
        assert graph.num_units == 1
        assert not [p for p in graph.pointers if p.level == "sram"]
    # heads of 256: the work buffers of products fit beside the tile, where the kernel is printed
    wide = optimize(graph_of(kernel((1, 1), 50, 250, 256), "bang")).graph
    assert lower_bang(wide).source


def test_stock_lowering_of_the_online_form() -> None:
    """TVM's own lowering of the scheduled function computes what NumPy does."""
    example = attention.example()
    scheduled = apply_default(example.func, MODELS["cpu"])
    out = tvm.runtime.empty(example.expected[0].shape, "float32")
    built = tvm.compile(scheduled.with_attr("global_symbol", "main"), "llvm")
    built["main"](*[tvm.runtime.tensor(array) for array in example.inputs], out)
    np.testing.assert_allclose(out.numpy(), example.expected[0], atol=3e-6)


def test_what_is_no_attention_is_refused_with_the_reason() -> None:
    product = Schedule(contraction.example().func, debug_mask="none")
    assert not attention.matches(product)
    with pytest.raises(ScheduleError, match="not those of an attention"):
        read_parts(product)

    def squared(q: Any, k: Any, v: Any) -> Any:
        """A weight that is no exponential of a difference from the maximum."""
        x = op.matmul(q, k)
        peak = op.max(x, axis=-1, keepdims=True)
        weight = op.multiply(op.subtract(x, peak), op.subtract(x, peak))
        total = op.sum(weight, axis=-1, keepdims=True)
        return op.matmul(op.divide(weight, total), v)

    example = from_relax(squared, [(4, 8), (8, 4), (4, 8)], lambda q, k, v: q)
    sch = Schedule(example.func, debug_mask="none")
    assert attention.matches(sch)
    with pytest.raises(ScheduleError):
        attention.schedule(sch, MODELS["cpu"])


def test_blocks_with_products_have_a_cube_core_each_and_as_many_tiles() -> None:
    """16 tiles of 64 queries, beside each of which is a cube core: none is masked, and products read memory."""
    func = kernel((4, 4), 256, 64, 16)
    tile = attention.tile_of(read_parts(Schedule(func, debug_mask="none")), ASCEND)
    assert tile.even and (tile.rows, tile.groups) == (64, 16)
    graph = graph_of(func, "ascend")
    assert int(graph.num_groups) == 16 <= int(ASCEND.figures["aic_cores"]) == 24
    assert int(ASCEND.num_groups) == 48
    products = [iop for iop, _ in optimize(graph).graph.walk() if iop.op == "contract"]
    # queries, keys and values are read where they lie, weights alone come by way of memory
    assert [str(s.pointer.role) for iop in products for s in iop.sources] == ["in", "in", "tmp", "in"]


@pytest.mark.parametrize(
    ("batch", "rows", "keys", "head", "what"),
    [
        (8, 256, 256, 64, (64, 128, 1, 16)),
        (2, 4, 1024, 64, (4, 128, 8, 16)),
        (8, 16, 1024, 128, (16, 512, 2, 16)),
        (4, 250, 128, 64, None),
        (4, 10, 128, 64, (10, 128, 1, 4)),
        (4, 256, 130, 64, None),
        (4, 256, 128, 40, None),
    ],
)
def test_even_tiles_divide_all_there_is(batch: int, rows: int, keys: int, head: int, what: Any) -> None:
    """Rows, keys, units that share them and groups; none where keys or heads are no whole fractals."""
    space = attention.ATTENTION_SPACES["ascend"]
    extents = Extents((batch,), rows, keys, UsualExtents((batch,), rows, keys, head, head), "float16")
    assert space.even is not None
    found = even_tile(extents, ASCEND, space.even, 24)
    assert (found is None) == (what is None)
    if found is not None:
        assert (found.rows, found.keys, found.parts, found.groups) == what
        tiles = batch * found.parts * rows // found.rows
        assert rows % found.rows == 0 and keys % (found.keys * found.parts) == 0 and tiles % found.groups == 0


def test_groups_are_as_few_as_need_no_more_turns() -> None:
    """24 tiles on 16 groups are two turns of 12, not of 16 and 8."""
    assert [dealt_groups(*each) for each in ((24, 16), (64, 24), (7, 16), (32, 16))] == [12, 22, 7, 16]


def test_more_tiles_than_units_are_turns() -> None:
    """7 tiles on 2 groups of 2 units: turns, the last of which is not full."""
    func = kernel((7, 7), 16, 32, 16)
    parts = read_parts(Schedule(func, debug_mask="none"))
    model = MODELS["cuda"]
    made = flash_function(
        func, parts, FlashTile(rows=8, keys=16, groups=2, units=2, staged=True, whole_tiles=True)
    )
    graph = extracted(made, model)
    equivalent(func, graph)


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


@pytest.mark.parametrize("kind", ["cuda", "bang", "ascend"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("heads", "keys"), [((1, 1), 64), ((2, 2), 300), ((3, 1), 65)])
def test_decoding_on_the_host_model(heads: tuple[int, int], keys: int, dtype: str, kind: str) -> None:
    """One query: its scores are one row, which a loop of one row makes a column; the printed text, run."""
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
