# SPDX-License-Identifier: Apache-2.0
"""Recipes on GPU hardware models: how work is dealt to warps and blocks, and that iGraphs compute right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
import uir_tvm
from tvm import relax
from tvm.relax import op
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.schedule import apply_default
from uir_tvm.schedule.tile_facts import space_of
from uir_tvm.schedules.column_reduction.shared_columns import ColumnSharing
from uir_tvm.schedules.demo import TOLERANCE, Example, from_relax
from uir_tvm.schedules.normalization.partial import Bound
from uir_tvm.schedules.normalization.shared_rows import Sharing
from uir_tvm.target.cpu.tiles import TILES as CPU
from uir_tvm.target.cuda.tiles import TILES as CUDA

from tests.extracted import extracted

H200 = hardware.get("h200", "cuda")
LANES = 32
#: 32-bit values of a lane beyond which a kernel spills: 255 registers hold the temporaries too.
MOST_VALUES = 64


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax_of_channels(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def normed(x: Any, g: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * g


@attrs.frozen
class Work:
    """A function, and what its iGraph on a GPU has."""

    build: Callable[..., Any]
    shapes: list[tuple[int, ...]]
    reference: Callable[..., Any]
    recipe: str
    #: Units of a group, and iOps of group scope or none.
    units: int
    shared: bool
    #: Whether sram holds rows.
    staged: bool = False


WORK = {
    "a warp takes rows": Work(
        lambda x: op.nn.softmax(x, axis=-1), [(40, 100)], softmax, "normalization", 4, False
    ),
    "four warps share a row that no part divides": Work(
        lambda x: op.nn.softmax(x, axis=-1), [(3, 1501)], softmax, "normalization", 4, True
    ),
    "eight warps share a row": Work(
        lambda x, g: op.nn.layer_norm(x, g, op.zeros((2304,), "float32"), axes=[-1]),
        [(3, 2304), (2304,)], normed, "normalization", 8, True,
    ),
    "a long row is staged and walked in chunks": Work(
        lambda x: op.nn.softmax(x, axis=-1), [(2, 33001)], softmax, "normalization", 16, True, staged=True
    ),
    "a row of several dimensions": Work(
        lambda x: op.mean(x, axis=[2, 3]), [(2, 5, 40, 64)], lambda x: x.mean((2, 3)), "reduction", 8, True
    ),
    "a single row": Work(lambda x: op.mean(x), [(40, 100)], lambda x: x.mean(), "reduction", 8, True),
    "the maximum": Work(
        lambda x: op.max(x, axis=-1), [(3, 3000)], lambda x: x.max(-1), "reduction", 8, True
    ),
    "warps share the rows of a column": Work(
        lambda x: op.sum(x, axis=0), [(1003, 70)], lambda x: x.sum(0), "column reduction", 16, True
    ),
    "columns in the middle, several reduced dimensions": Work(
        lambda x: op.sum(x, axis=[0, 2]), [(5, 6, 32, 64)], lambda x: x.sum((0, 2)),
        "column reduction", 8, True,
    ),
    "softmax over the channels of an image": Work(
        lambda x: op.nn.softmax(x, axis=1), [(2, 21, 30, 7)], softmax_of_channels,
        "column reduction", 4, False,
    ),
    "transposed tiles": Work(
        lambda x: op.permute_dims(op.exp(x), [0, 2, 1]), [(3, 50, 70)],
        lambda x: np.exp(x).transpose(0, 2, 1), "transpose", 4, False,
    ),
    "a bias for many rows": Work(
        lambda x, b: op.nn.relu(op.add(x, b)), [(6, 50, 300), (300,)],
        lambda x, b: np.maximum(x + b, 0), "elementwise", 4, False,
    ),
}  # fmt: skip


def graph_of(example: Example, recipe: str) -> IGraph:
    scheduled = apply_default(example.func, H200)
    assert scheduled.attrs["uir.recipe"] == recipe
    graph = extracted(scheduled, H200)
    return graph


def assert_right(graph: IGraph, example: Example) -> None:
    for got, want in zip(interpreter.run(graph, *example.inputs), example.expected, strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        error = np.abs(np.asarray(got, "float64").reshape(want.shape) - want).max(initial=0)
        assert error <= TOLERANCE * scale


@pytest.mark.parametrize("name", WORK)
def test_work_is_dealt_and_right(name: str) -> None:
    work = WORK[name]
    example = from_relax(work.build, work.shapes, work.reference)
    graph = graph_of(example, work.recipe)
    assert graph.num_units == work.units
    assert any(iop.attrs.get("scope") == "group" for iop, _ in graph.walk()) == work.shared
    rows = [p for p in graph.pointers if p.level == "sram" and p.size > 16 * LANES * work.units]
    assert bool(rows) == work.staged
    for pointer in graph.pointers:
        if pointer.level == "reg":
            assert pointer.size * DTYPES[pointer.dtype].bytes <= MOST_VALUES * 4 * LANES, pointer.name
    assert_right(graph, example)


def test_few_rows_are_many_tiles() -> None:
    """Work that no warp needs to do alone is spread: no tile is larger than the one wide access."""
    example = from_relax(lambda x, y: op.add(x, y), [(2, 16, 64)] * 2, lambda x, y: x + y)
    graph = graph_of(example, "elementwise")
    assert graph.num_parallel >= 8
    assert_right(graph, example)


def test_narrow_floats_are_rounded_once() -> None:
    """Between the loads and the store a chain of fp16 operators is fp32."""
    example = from_relax(
        lambda x, b: op.multiply(op.tanh(op.add(x, b)), x),
        [(32, 96), (96,)],
        lambda x, b: np.tanh(x + b) * x,
        dtypes=["float16", "float16"],
    )
    graph = graph_of(example, "elementwise")
    computed = {iop.dtype for iop, _ in graph.walk() if iop.op in ("unary", "binary")}
    assert computed == {"fp32"}
    casts = [iop for iop, _ in graph.walk() if iop.op == "cast" and iop.dtype == "fp16"]
    assert len(casts) == 1
    (got,), (want,) = interpreter.run(graph, *example.inputs), example.expected
    # one rounding to fp16, half an ULP of values below 4
    assert np.abs(np.asarray(got, "float64").reshape(want.shape) - want).max() <= 2**-9 + TOLERANCE


def test_rows_of_infinities_keep_their_maximum() -> None:
    """Partial results start from -inf where the function does, though rfactor takes the lowest number."""
    import tvm
    from tvm import relax
    from uir_tvm.kernel_graph.legalize import legalize
    from uir_tvm.schedules.demo import fuse_whole

    x = relax.Var("x", relax.TensorType([2, 2000], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(op.max(x, axis=-1))
        builder.emit_func_output(out)
    assert isinstance(builder.get(), tvm.IRModule)
    graph = extracted(apply_default(fuse_whole(legalize(builder.get())), H200), H200)
    assert any(iop.attrs.get("scope") == "group" for iop, _ in graph.walk())
    values = np.full((2, 2000), -np.inf, "float32")
    values[1, 1999] = 3
    assert interpreter.run(graph, values)[0].tolist() == [-np.inf, 3]


@pytest.mark.parametrize(
    "columns, size, inner, part, chunks",
    [
        (4096, 8, 4096, 512, 1),
        (1501, 4, 1501, 384, 1),
        (50257, 16, 50257, 896, 4),
        (40960, 16, 4096, 512, 5),
        (2560, 8, 64, 320, 1),
    ],
)
def test_parts_of_a_row(columns: int, size: int, inner: int, part: int, chunks: int) -> None:
    """Even and aligned where the row allows it; together they cover it."""
    sharing = Sharing.of(columns, size, CUDA.row_values, inner)
    assert (sharing.part, sharing.chunks) == (part, chunks)
    assert sharing.part * sharing.size * sharing.chunks >= columns
    assert sharing.part <= CUDA.row_values


@pytest.mark.parametrize(
    "tiles, columns, reduced", [(1, 4096, 8192), (4, 768, 512), (1, 64, 100_003), (3, 5, 2)]
)
@pytest.mark.parametrize("exact", [False, True])
def test_shares_of_columns(tiles: int, columns: int, reduced: int, exact: bool) -> None:
    sharing = ColumnSharing.of(H200, tiles, columns, reduced, exact)
    covered = sharing.size * sharing.rows * sharing.steps
    assert covered >= reduced
    assert not exact or covered == reduced
    assert sharing.rows * sharing.columns <= CUDA.row_values


def test_a_bound_is_a_sum_of_variables() -> None:
    bound = Bound("b", ((0, 10), (-1, 1)), 25)
    assert bound.holds([1, 99, 14]) and not bound.holds([2, 99, 5])


def test_a_kind_without_a_row_is_tiled_as_a_cpu() -> None:
    assert space_of(H200) is CUDA
    assert space_of(hardware.get(None, "cpu")) is CPU
    other = type(H200)("other", "unheard", 1, 1, 1 << 14, 0, 64, {})
    assert space_of(other) is CPU


@pytest.mark.compares_itself
def test_two_results_share_their_rows() -> None:
    """A sum that goes on beside its normalisation: both outputs are written from one nest of shared rows."""
    builder = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((3, 2304), "float32")) for name in "xy")
    g = relax.Var("g", relax.TensorType((2304,), "float32"))
    with builder.function("main", [x, y, g]):
        with builder.dataflow():
            total = builder.emit_output(op.add(x, y))
            bias = builder.emit(op.zeros((2304,), "float32"))
            result = builder.emit_output(op.nn.layer_norm(total, g, bias, axes=[-1]))
        builder.emit_func_output(relax.Tuple([total, result]))
    exe = uir_tvm.compile(builder.get(), "uir-cuda")
    (kernel,) = exe.info.kernels
    assert kernel.recipe == "normalization" and not kernel.fallback
    assert "parallel (3, 8)" in kernel.texts["optimize"]
    rng = np.random.default_rng(0)
    a, b, gain = (rng.standard_normal(shape).astype("float32") for shape in ((3, 2304), (3, 2304), (2304,)))
    for got, want in zip(exe(a, b, gain), (a + b, normed((a + b).astype("float64"), gain)), strict=True):
        np.testing.assert_allclose(got, want, atol=TOLERANCE * float(np.abs(want).max()), rtol=0)
