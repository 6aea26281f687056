# SPDX-License-Identifier: Apache-2.0
"""Tiles that lie one beneath the other are done as one, and their blocks meet every element."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, tirx
from tvm_ffi.structural import structural_map
from uir_tvm.argument_checks import called_by_a_program
from uir_tvm.bound_kernel import symbols_in
from uir_tvm.igraph import HardwareModel, IGraph, parse_igraph, print_igraph
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.schedule import apply_default
from uir_tvm.schedule.blocks import collect
from uir_tvm.target.cpu.lower import lower

from tests.extracted import extracted
from tests.open_functions import INNER

from .support import HOST, llvm_target

FUNCTION = INNER["transpose of two open dimensions"]


def processor(vector_bytes: int) -> HardwareModel:
    """This machine with other vectors, which LLVM makes of its own."""
    figures = {**HOST.figures, "vector_registers": 32 if vector_bytes == 64 else 16}
    return HardwareModel("other", "cpu", 2, 1, HOST.reg_bytes, 0, vector_bytes, figures)


def scheduled(hw: HardwareModel, func: tirx.PrimFunc) -> tuple[IGraph, tirx.PrimFunc]:
    """A function's graph for a processor."""
    made = apply_default(func, hw)
    return extracted(made, hw), made


def with_added(dtype: str = "float32") -> tirx.PrimFunc:
    """A transposed operand to which another is added: blocks go by way of scratch memory."""
    n, m = (tirx.Var(name, "int64") for name in "nm")
    x, y = te.placeholder((n, m), dtype, "x"), te.placeholder((m, n), dtype, "y")
    func = te.create_prim_func([x, y, te.compute((m, n), lambda i, j: x[j, i] + y[i, j], "z")])
    return with_sizes(func, {name: Size(name, 1, 512) for name in "nm"})


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_element_is_moved_at_any_sizes(vector_bytes: int, dtype: str) -> None:
    """Sides shorter than a block, of whole blocks, and in between; tiles of one block's width and wider."""
    n, m = (tirx.Var(name, "int64") for name in "nm")
    x = te.placeholder((n, m), dtype, "x")
    copy = te.create_prim_func([x, te.compute((m, n), lambda i, j: x[j, i], "y")])
    copy = with_sizes(copy, {name: Size(name, 1, 512) for name in "nm"})
    kernels = {}
    for name, func in (("copy", copy), ("added", with_added(dtype))):
        graph, made = scheduled(processor(vector_bytes), func)
        lowered = lower(graph, made)
        with called_by_a_program():
            kernels[name] = tvm.compile(tvm.IRModule({"main": lowered}), target=llvm_target())["main"]
    rng = np.random.default_rng(5)
    sides = (1, 3, 7, 8, 9, 16, 17, 33, 65)
    for rows, cols in (*product(sides, sides), (512, 8), (8, 512), (512, 300)):
        given = rng.standard_normal((rows, cols)).astype(dtype)
        other = rng.standard_normal((cols, rows)).astype(dtype)
        for name, inputs, want in (
            ("copy", [given], given.T),
            ("added", [given, other], given.T + other),
        ):
            out = tvm.runtime.tensor(np.full((cols, rows), np.nan, dtype))
            kernels[name](*map(tvm.runtime.tensor, inputs), out)
            np.testing.assert_array_equal(out.numpy(), want, err_msg=f"{name} {rows} x {cols}")


def extents(lowered: tirx.PrimFunc) -> list[Any]:
    """How many tiles the caller's thread, then each of several, takes one after another."""
    bound = [(bind.var, bind.value) for bind in collect(lowered.body, tirx.Bind)]
    loops = [each for each in collect(lowered.body, tirx.For) if str(each.loop_var.name) == "place"]
    return [next((value for var, value in bound if var.same_as(x.extent)), x.extent) for x in loops]


def rounds(lowered: tirx.PrimFunc, sizes: dict[str, int]) -> int:
    """The caller's thread's tiles at some sizes."""
    shapes = {v: tirx.IntImm("int64", sizes[str(v.name)]) for v in symbols_in(lowered)}
    alone = structural_map(extents(lowered)[0], (tvm.ir.Var, shapes.get))
    found = tvm.sym.Analyzer().simplify(alone)
    assert isinstance(found, tirx.IntImm)
    return int(found)


@pytest.mark.parametrize("func", [FUNCTION.func(), with_added()], ids=["copy", "added"])
def test_narrow_tiles_are_one_and_wide_ones_are_not(func: tirx.PrimFunc) -> None:
    """300 rows are 19 tiles of 16; where columns take one round they are one tile."""
    graph, made = scheduled(processor(32), func)
    lowered = lower(graph, made)
    sizes = [str(size.name) for size in graph.sizes]
    narrow, wide = dict.fromkeys(sizes, 300), dict.fromkeys(sizes, 300)
    narrow[sizes[0]] = 8
    assert (rounds(lowered, narrow), rounds(lowered, wide)) == (1, 19)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rows :m - 16*pid", "rows :m - 15*pid"),  # the next unit ends elsewhere
        ("+ 16*pid;", "+ 17*pid;"),  # a gap between the tiles of two units
    ],
)
def test_tiles_that_leave_a_gap_stay_apart(old: str, new: str) -> None:
    graph, made = scheduled(processor(32), FUNCTION.func())
    text = print_igraph(graph)
    assert old in text
    other = parse_igraph(text.replace(old, new))
    assert all("Select" in str(extent) for extent in extents(lower(graph, made)))
    assert not any("Select" in str(extent) for extent in extents(lower(other, made)))
