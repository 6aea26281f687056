# SPDX-License-Identifier: Apache-2.0
"""The attention recipe: its online form computes the same on every kind of hardware, in tiles that fit."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.errors import RecipeError, ScheduleError
from uir_tvm.igraph import interpreter
from uir_tvm.optimize import optimize
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
from uir_tvm.verify import equivalent

from tests.asked import asked
from tests.extracted import extracted
from tests.open_functions import CACHED, OpenFunction, attended, attention_of

from .attention_kernels import ASCEND, MODELS, SHAPES, graph_of, kernel, masked_reference


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


def test_units_share_the_keys_of_few_rows() -> None:
    """As many as pay for combining what they found, and none where there are batches for all of them."""
    for kind, heads, keys, count in (
        ("bang", (8, 2), 1024, 8),
        ("bang", (8, 8), 512, 1),
        ("cpu", (3, 3), 2000, 2),
    ):
        parts = fold_heads(read_parts(Schedule(kernel(heads, 1, keys, 16), debug_mask="none")))
        assert attention.tile_of(parts, MODELS[kind]).parts == count


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


def test_scores_stay_on_chip() -> None:
    """Dram holds the operands and the result alone, and each key is loaded once for a row of tiles."""
    graph = graph_of(kernel((2, 2), 64, 256, 16), "cuda")
    assert {str(p.role) for p in graph.pointers if p.level == "dram"} == {"in", "out"}
    shared = [p for p in graph.pointers if p.level == "sram"]
    assert len(shared) == 2  # keys and values, which the units of a group load together
    (loop,) = [node for node in graph.body if hasattr(node, "extent")]
    assert loop.attrs["pipeline"] == 2


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
    """16 tiles of 64 queries, each beside a cube core: none is masked, and products read memory."""
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
