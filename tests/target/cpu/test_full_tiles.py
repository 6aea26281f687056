# SPDX-License-Identifier: Apache-2.0
"""Units whose tiles are full: no bounds of sizes, and conditions that hold for just these units."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import te, tirx
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, affine, parse_igraph, print_igraph, var
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.elementwise import RECIPE
from uir_tvm.target.cpu.full_tiles import full_tiles

from tests.extracted import extracted
from tests.open_functions import OPEN, kernel_of


def graph_of(name: str) -> IGraph:
    hw = hardware.get()
    return extracted(apply_default(OPEN[name].func(), hw), hw)


def test_bounds_of_sizes_become_conditions() -> None:
    graph = graph_of("rows")
    full = full_tiles(graph)
    assert full is not None
    assert any(
        bound is not None for iop, _ in graph.walk() for piece in iop.slices() for bound in piece.valid
    )
    assert all(piece.valid == (None,) * 4 for iop, _ in full.graph.walk() for piece in iop.slices())
    rows = max(int(piece.rows) for iop, _ in graph.walk() for piece in iop.slices())
    assert var("n") - rows * var("pid") - rows in full.conditions
    n = 3 * rows + 1
    held = [all(c.evaluate({"n": n, "pid": pid}) >= 0 for c in full.conditions) for pid in range(4)]
    assert held == [True, True, True, False]


def test_a_bound_in_a_loop_is_asked_for_its_last_round() -> None:
    text = print_igraph(graph_of("rows")).replace("rows :n - ", "rows :n - 8*k - ")
    head, body = text.split("  move.dram.reg", 1)
    body = body.rstrip().removesuffix("}")
    graph = parse_igraph(f"{head}  for k in 3 {{\n  move.dram.reg{body}  }}\n}}\n")
    full = full_tiles(graph)
    assert full is not None
    assert all("k" not in condition.variables() for condition in full.conditions)
    plain = full_tiles(graph_of("rows"))
    assert plain is not None
    assert full.conditions == tuple(condition - affine(16) for condition in plain.conditions)


def test_static_graphs_have_none() -> None:
    hw = hardware.get()
    assert full_tiles(extracted(apply_default(RECIPE.example().func, hw), hw)) is None


def test_loops_of_full_tiles_end_where_sizes_end_them() -> None:
    """Full columns, and fewer rows than one unit may walk: what lies behind the result is not written."""
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = te.placeholder((n, m), name="x")
    turned = te.compute((n, m), lambda i, j: x[n - 1 - i, j], "turned")
    func = with_sizes(te.create_prim_func([x, turned]), {"n": Size("n", 0, 30), "m": Size("m", 0, 40)})
    kernel = kernel_of(func, "uir-cpu")
    given = np.arange(200, dtype="float32").reshape(5, 40)
    memory = np.from_dlpack(tvm.runtime.tensor(np.full((30, 40), -1, "float32")))
    kernel(tvm.runtime.tensor(given), tvm.runtime.from_dlpack(memory[:5]))
    np.testing.assert_array_equal(memory[:5], given[::-1])
    assert (memory[5:] == -1).all()
