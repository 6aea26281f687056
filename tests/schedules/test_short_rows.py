# SPDX-License-Identifier: Apache-2.0
"""Rows of 2, 4 or 8 bytes that change places are turned in square tiles, as elements of so many bytes."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import te, tirx
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.dtypes import bytes_of
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu.wide_elements import wide_elements
from uir_tvm.verify import verify

from tests.as_programs import run_igraph
from tests.extracted import extracted

CPU = hardware.get("avx2-4core")


def turned(shape: tuple[int, ...], dtype: str = "float32", order: tuple[int, ...] = ()) -> tirx.PrimFunc:
    """The dimensions of an operand in another order; by default the last two but one exchanged."""
    n = len(shape)
    axes = order or (*range(n - 3), n - 2, n - 3, n - 1)
    x = te.placeholder(shape, dtype, name="x")
    places = [axes.index(k) for k in range(n)]
    y = te.compute([shape[k] for k in axes], lambda *i: x(*[i[p] for p in places]), name="y")
    return te.create_prim_func([x, y]).with_attr("global_symbol", "turned")


def graph_of(func: tirx.PrimFunc, hw: hardware.HardwareModel = CPU) -> IGraph:
    """The iGraph of the default schedule."""
    return extracted(apply_default(func, hw), hw)


def moved_bytes(graph: IGraph) -> int:
    """Of an element that is moved on a CPU."""
    return bytes_of(wide_elements(graph).params[0].dtype)


@pytest.mark.parametrize(
    ("shape", "dtype", "order", "size"),
    [
        ((784, 58, 2), "float32", (), 8),
        ((3, 40, 96, 2), "float16", (), 4),
        ((40, 96, 8), "int8", (), 8),
        ((40, 96, 4), "bool", (), 4),
        ((64, 80, 2), "uint8", (), 2),
        ((20, 30, 12, 2), "float32", (2, 1, 0, 3), 8),
        ((40, 96, 4), "float32", (), 4),  # rows of 16 bytes are no elements
        ((40, 96, 2), "float64", (), 8),
        ((3, 96, 2), "float32", (), 4),  # a side is shorter than a block
    ],
)
def test_short_rows_are_moved_whole(
    shape: tuple[int, ...], dtype: str, order: tuple[int, ...], size: int
) -> None:
    graph = graph_of(turned(shape, dtype, order))
    verify(graph)
    assert moved_bytes(graph) == size
    x = (100 * np.random.default_rng(0).standard_normal(shape)).astype(dtype)
    wanted = x.transpose(order or (*range(x.ndim - 3), x.ndim - 2, x.ndim - 3, x.ndim - 1))
    for found in (interpreter.run(graph, x)[0], run_igraph(graph, "uir-cpu", x)[0]):
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("columns", [slice(0, 96), slice(3, 90)])
def test_parts_of_an_operand_are_moved_so(columns: slice) -> None:
    """Whole rows of it, from any row on."""
    n = columns.stop - columns.start
    x = te.placeholder((40, 96, 2), "float32", name="x")
    y = te.compute((n, 40, 2), lambda i, j, k: x[j, i + columns.start, k], name="y")
    graph = graph_of(te.create_prim_func([x, y]))
    given = np.random.default_rng(0).standard_normal((40, 96, 2)).astype(np.float32)
    found = run_igraph(graph, "uir-cpu", given)[0]
    np.testing.assert_array_equal(found.reshape(n, 40, 2), given[:, columns].swapaxes(0, 1))


def test_devices_turn_as_before() -> None:
    assert moved_bytes(graph_of(turned((784, 58, 2)), hardware.get("910b2", "ascend"))) == 4


def test_less_is_turned_by_one_thread_than_scaled() -> None:
    """An element of a transposition takes as long as several operations."""
    x = te.placeholder((128, 128), "float32", name="x")
    scaled = te.create_prim_func([x, te.compute((128, 128), lambda i, j: x[i, j] * 2.0, name="y")])
    assert graph_of(scaled).num_parallel == 1
    assert graph_of(turned((128, 128, 1))).num_parallel == 1
    turned_plain = te.create_prim_func([x, te.compute((128, 128), lambda i, j: x[j, i], name="y")])
    assert graph_of(turned_plain).num_parallel > 1
    assert graph_of(turned((32, 32, 2))).num_parallel == 1
